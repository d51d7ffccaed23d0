(* Files: one array cut in one dimension on each side.  A disk moves granules of G bytes; a program reads and writes
   whole granules of any files, decides what comes next from all that it has read, and has all the memory it wants.
   needed_touched       a program that is right for every disk touches each granule that has a byte it needs or makes
   granules_bound       the number that `reshard convert` prints as the bound of such a job
   two_cuts_bound       no program touches fewer
   once_needs_a_band    who touches each granule once holds a band of them: less memory, more granules *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Layout Received Schedule.

Inductive file := Source (i : nat) | Target (j : nat) | Scratch (k : nat).
Definition file_eq : forall f g : file, {f = g} + {f <> g}.
Proof. decide equality; apply Nat.eq_dec. Defined.
Definition address : Type := file * nat.
Definition granule : Type := file * nat.
Definition address_eq : forall a b : address, {a = b} + {a <> b}.
Proof. decide equality; [apply Nat.eq_dec|apply file_eq]. Defined.
Definition disk := address -> nat.
Definition put (D : disk) (a : address) (v : nat) : disk := fun b => if address_eq b a then v else D b.

Section Granules.
Variable G : nat.
Hypothesis G_pos : 0 < G.

Definition granule_of (a : address) : granule := (fst a, snd a / G).
Definition content (D : disk) (g : granule) : list nat := map (fun i => D (fst g, snd g * G + i)) (seq 0 G).
Definition overwrite (D : disk) (g : granule) (v : list nat) : disk :=
  fun b => if address_eq (granule_of b) g then nth (snd b mod G) v 0 else D b.

Inductive program :=
| done
| read (g : granule) (go : list nat -> program)
| write (g : granule) (v : list nat) (go : program).
Fixpoint result (p : program) (D : disk) : disk :=
  match p with
  | done => D
  | read g go => result (go (content D g)) D
  | write g v go => result go (overwrite D g v)
  end.
Fixpoint touched (p : program) (D : disk) : list granule :=
  match p with
  | done => []
  | read g go => g :: touched (go (content D g)) D
  | write g v go => g :: touched go (overwrite D g v)
  end.

(* the right value of a byte of the target *)
Inductive wish := Copy (a : address) | Fixed (v : nat).
Definition right (p : program) (targets : list address) (want : address -> wish) : Prop :=
  forall D a, In a targets -> result p D a = match want a with Copy b => D b | Fixed v => v end.

(* A granule that is not touched neither changes nor is known. *)
Lemma untouched p : forall D E b, ~ In (granule_of b) (touched p D) -> (forall a, a <> b -> D a = E a) ->
  (forall a, a <> b -> result p D a = result p E a) /\ result p D b = D b /\ result p E b = E b.
Proof.
  induction p as [|g go IH|g v go IH]; simpl; intros D E b N A; auto.
  - assert (C : content D g = content E g).
    { apply map_ext_in. intros i I. apply in_seq in I. apply A. intros <-. apply N. left.
      unfold granule_of; simpl. rewrite Nat.add_comm, Nat.div_add, Nat.div_small by lia. destruct g; auto. }
    rewrite <- C. apply IH; auto.
  - assert (NG : granule_of b <> g) by (intros <-; apply N; auto).
    destruct (IH (overwrite D g v) (overwrite E g v) b) as [H1 [H2 H3]].
    + intros I. apply N. auto.
    + intros a Ha. unfold overwrite. destruct (address_eq (granule_of a) g); auto.
    + split; auto. rewrite H2, H3. unfold overwrite. destruct (address_eq (granule_of b) g); tauto.
Qed.

Theorem needed_touched p targets want D b : right p targets want ->
  (forall a, In a targets -> want a <> Copy a) ->
  In b targets \/ (exists a, In a targets /\ want a = Copy b) -> In (granule_of b) (touched p D).
Proof.
  intros R NS H. destruct (in_dec address_eq (granule_of b) (touched p D)) as [I|N]; auto. exfalso.
  set (E := put D b (S (D b))).
  assert (EB : E b = S (D b)) by (unfold E, put; destruct (address_eq b b); congruence).
  assert (A : forall a, a <> b -> D a = E a) by (intros a Ha; unfold E, put; destruct (address_eq a b); congruence).
  destruct (untouched p D E b N A) as [H1 [H2 H3]]. destruct H as [I|[a [I W]]].
  - pose proof (R D b I) as RD. pose proof (R E b I) as RE. pose proof (NS b I) as NB.
    destruct (want b) as [c|v]; [|lia]. assert (c <> b) by (intros ->; congruence). rewrite (A c) in RD by auto. lia.
  - pose proof (R D a I) as RD. pose proof (R E a I) as RE. rewrite W in RD, RE.
    assert (a <> b) by (intros ->; apply (NS b I W)). rewrite (H1 a) in RD by auto. lia.
Qed.

(* A cut of an array of outer * sum widths * inner bytes: file j has widths[j] of the middle dimension, row-major. *)
Record cut := Cut { outer : nat; widths : list nat; inner : nat }.
Fixpoint sum (l : list nat) : nat := match l with [] => 0 | a :: r => a + sum r end.
Definition bytes (c : cut) : nat := outer c * sum (widths c) * inner c.
Definition file_bytes (c : cut) (j : nat) : nat := outer c * nth j (widths c) 0 * inner c.

Fixpoint band (ws : list nat) (i : nat) : nat * nat :=
  match ws with
  | [] => (0, 0)
  | w :: ws => if i <? w then (0, i) else let (j, x) := band ws (i - w) in (S j, x)
  end.
Definition place (c : cut) (n : nat) : nat * nat :=
  let s := sum (widths c) in
  let (j, x) := band (widths c) (n / inner c mod s) in
  (j, (n / inner c / s * nth j (widths c) 0 + x) * inner c + n mod inner c).
Definition index (c : cut) (j o : nat) : nat :=
  let w := nth j (widths c) 0 in
  (o / inner c / w * sum (widths c) + (sum (firstn j (widths c)) + o / inner c mod w)) * inner c + o mod inner c.

Lemma band_spec ws i j x : i < sum ws -> band ws i = (j, x) ->
  j < length ws /\ x < nth j ws 0 /\ sum (firstn j ws) + x = i.
Proof.
  revert i j x; induction ws as [|w ws IH]; simpl; intros i j x H E; [lia|].
  destruct (Nat.ltb_spec i w) as [C|C].
  - inversion E; subst. simpl. lia.
  - destruct (band ws (i - w)) as [j' x'] eqn:B. inversion E; subst. destruct (IH (i - w) j' x) as [H1 [H2 H3]]; auto.
    { lia. } simpl. lia.
Qed.
Lemma band_index ws j x : j < length ws -> x < nth j ws 0 -> sum (firstn j ws) + x < sum ws /\
  band ws (sum (firstn j ws) + x) = (j, x).
Proof.
  revert j; induction ws as [|w ws IH]; simpl; intros j H1 H2; [lia|]. destruct j as [|j]; simpl in *.
  - split; [lia|]. destruct (Nat.ltb_spec x w); [auto|lia].
  - destruct (IH j ltac:(lia) H2) as [H3 H4]. split; [lia|].
    destruct (Nat.ltb_spec (w + sum (firstn j ws) + x) w); [lia|].
    replace (w + sum (firstn j ws) + x - w) with (sum (firstn j ws) + x) by lia. rewrite H4. auto.
Qed.

(* q * d + r, taken apart *)
Lemma parts q d r : r < d -> (q * d + r) / d = q /\ (q * d + r) mod d = r.
Proof.
  intros H. rewrite Nat.add_comm, Nat.div_add, Nat.mod_add, Nat.div_small, Nat.mod_small by lia. auto.
Qed.

Lemma index_place c n j o : n < bytes c -> place c n = (j, o) ->
  j < length (widths c) /\ o < file_bytes c j /\ index c j o = n.
Proof.
  unfold bytes, file_bytes, place, index. destruct c as [u ws k]; simpl. set (s := sum ws). intros H E.
  assert (K : 0 < k) by nia. assert (Sp : 0 < s) by nia.
  destruct (band ws (n / k mod s)) as [j' x] eqn:B. injection E as <- <-.
  pose proof (Nat.mod_upper_bound (n / k) s ltac:(lia)) as MB. apply band_spec in B as [B1 [B2 B3]]; auto.
  pose proof (Nat.mod_upper_bound n k ltac:(lia)) as MK. set (w := nth j' ws 0) in *.
  destruct (parts (n / k / s * w + x) k (n mod k) MK) as [P1 P2]. rewrite P1, P2.
  destruct (parts (n / k / s) w x B2) as [P3 P4]. rewrite P3, P4.
  assert (U : n / k / s < u). { apply Nat.div_lt_upper_bound; [lia|]. apply Nat.div_lt_upper_bound; lia. }
  split; auto. split.
  - assert (n / k / s * w + x < u * w) by nia. nia.
  - rewrite B3. pose proof (Nat.div_mod (n / k) s ltac:(lia)). pose proof (Nat.div_mod n k ltac:(lia)). nia.
Qed.
Lemma place_index c j o : j < length (widths c) -> o < file_bytes c j ->
  index c j o < bytes c /\ place c (index c j o) = (j, o).
Proof.
  unfold bytes, file_bytes, place, index. destruct c as [u ws k]; simpl. set (s := sum ws). set (w := nth j ws 0).
  intros Hj H. assert (K : 0 < k) by nia. assert (Wp : 0 < w) by nia.
  pose proof (Nat.mod_upper_bound (o / k) w ltac:(lia)) as MW. pose proof (Nat.mod_upper_bound o k ltac:(lia)) as MK.
  destruct (band_index ws j (o / k mod w) Hj MW) as [B1 B2]. fold s in B1.
  set (m := sum (firstn j ws) + o / k mod w) in *.
  destruct (parts (o / k / w * s + m) k (o mod k) MK) as [P1 P2]. rewrite P1, P2.
  destruct (parts (o / k / w) s m B1) as [P3 P4]. rewrite P3, P4, B2. fold w.
  assert (U : o / k / w < u). { apply Nat.div_lt_upper_bound; [lia|]. apply Nat.div_lt_upper_bound; lia. }
  split.
  - assert (o / k / w * s + m < u * s) by nia. nia.
  - f_equal. pose proof (Nat.div_mod (o / k) w ltac:(lia)). pose proof (Nat.div_mod o k ltac:(lia)). nia.
Qed.

(* The job: headers of these lengths stand before the bytes of each file; the content of a target's header does not matter. *)
Variables (source target : cut) (before after : list nat) (says : nat -> nat -> nat).
Definition source_size (i : nat) : nat := nth i before 0 + file_bytes source i.
Definition target_size (j : nat) : nat := nth j after 0 + file_bytes target j.
Definition targets : list address :=
  flat_map (fun j => map (fun o => (Target j, o)) (seq 0 (target_size j))) (seq 0 (length (widths target))).
Definition want (a : address) : wish :=
  match a with
  | (Target j, o) =>
      let h := nth j after 0 in
      if o <? h then Fixed (says j o)
      else let (i, at_) := place source (index target j (o - h)) in Copy (Source i, nth i before 0 + at_)
  | _ => Fixed 0
  end.

(* all granules of all files: all bytes of a target are written, all of a source, its header among them, are read *)
Definition granules_bound : nat :=
  sum (map (fun i => ceil_div (source_size i) G) (seq 0 (length (widths source)))) +
  sum (map (fun j => ceil_div (target_size j) G) (seq 0 (length (widths target)))).

Definition granules (f : nat -> file) (size : nat -> nat) (n : nat) : list granule :=
  flat_map (fun i => map (fun k => (f i, k)) (seq 0 (ceil_div (size i) G))) (seq 0 n).
Lemma granules_length f size n :
  length (granules f size n) = sum (map (fun i => ceil_div (size i) G) (seq 0 n)).
Proof.
  unfold granules. induction (seq 0 n) as [|i l IH]; simpl; auto. rewrite app_length, map_length, seq_length. f_equal. exact IH.
Qed.
Lemma in_granules f size n g : In g (granules f size n) ->
  exists i k, g = (f i, k) /\ i < n /\ k * G < size i.
Proof.
  unfold granules. rewrite in_flat_map. intros [i [Hi H]]. apply in_map_iff in H as [k [<- Hk]].
  apply in_seq in Hi, Hk. exists i, k. split; auto. split; [lia|].
  pose proof (ceil_div_spec (size i) G G_pos). nia.
Qed.
Lemma nodup_granules f size n : (forall i j, f i = f j -> i = j) -> NoDup (granules f size n).
Proof.
  intros F. unfold granules. pose proof (seq_NoDup n 0) as ND. induction ND as [|i l N ND IH]; simpl; [constructor|].
  apply nodup_app_intro; auto.
  - apply FinFun.Injective_map_NoDup; [|apply seq_NoDup]. intros a b E; congruence.
  - intros g H1 H2. apply in_map_iff in H1 as [k [<- _]]. apply in_flat_map in H2 as [j [Hj H2]].
    apply in_map_iff in H2 as [k' [E _]]. injection E as E _. apply F in E. subst; auto.
Qed.

(* Headers of the source are shorter than a granule, and none of its files is empty. *)
Theorem two_cuts_bound p D : bytes source = bytes target ->
  (forall i, i < length (widths source) -> nth i before 0 < G /\ 0 < file_bytes source i) ->
  right p targets want -> granules_bound <= length (touched p D).
Proof.
  intros EB HS R. unfold granules_bound. rewrite <- (granules_length Source), <- (granules_length Target).
  rewrite <- app_length. apply NoDup_incl_length.
  { apply nodup_app_intro; try (apply nodup_granules; intros; congruence).
    intros g H1 H2. apply in_granules in H1 as [i [k [-> _]]]. apply in_granules in H2 as [j [k' [E _]]]. discriminate. }
  assert (IT : forall j o, j < length (widths target) -> o < target_size j -> In (Target j, o) targets).
  { intros j o Hj Ho. unfold targets. apply in_flat_map. exists j. split. { apply in_seq; lia. }
    apply in_map_iff. exists o. split; auto. apply in_seq; lia. }
  assert (NS : forall a, In a targets -> want a <> Copy a).
  { intros [f o] _. destruct f as [|j|]; simpl; try discriminate. destruct (o <? _); [discriminate|].
    destruct (place _ _). discriminate. }
  intros g Hg. apply in_app_iff in Hg as [Hg|Hg]; apply in_granules in Hg as [i [k [-> [Hi Hk]]]].
  - destruct (HS i Hi) as [H1 H2]. set (h := nth i before 0) in *. set (o := Nat.max (k * G) h).
    assert (O1 : h <= o) by (unfold o; lia).
    assert (O2 : o - h < file_bytes source i) by (unfold o, source_size in *; fold h in Hk; lia).
    assert (O3 : o / G = k).
    { unfold o. destruct k as [|k]; [simpl; apply Nat.div_small; auto|].
      rewrite Nat.max_l by nia. apply Nat.div_mul. lia. }
    replace (Source i, k) with (granule_of (Source i, o)) by (unfold granule_of; simpl; rewrite O3; auto).
    apply (needed_touched p targets want D (Source i, o) R NS). right.
    destruct (place_index source i (o - h) Hi O2) as [N1 N2]. set (n := index source i (o - h)) in *.
    rewrite EB in N1. destruct (place target n) as [j t] eqn:PT.
    destruct (index_place target n j t N1 PT) as [T1 [T2 T3]].
    exists (Target j, nth j after 0 + t). split. { apply IT; auto. unfold target_size. lia. }
    simpl. destruct (Nat.ltb_spec (nth j after 0 + t) (nth j after 0)); [lia|].
    replace (nth j after 0 + t - nth j after 0) with t by lia. rewrite T3, N2. fold h. do 2 f_equal. lia.
  - replace (Target i, k) with (granule_of (Target i, k * G))
      by (unfold granule_of; simpl; rewrite Nat.div_mul by lia; auto).
    apply (needed_touched p targets want D (Target i, k * G) R NS). left. apply IT; auto.
Qed.
End Granules.

(* If the memory holds everything, the bound is met: two rows of four bytes become two pairs of columns, in granules of two
   bytes, behind a header of one byte at the target. *)
Definition rows := Cut 1 [1; 1] 4.
Definition columns := Cut 2 [2; 2] 1.
Definition at_once : program :=
  read (Source 0, 0) (fun a => read (Source 0, 1) (fun b => read (Source 1, 0) (fun c => read (Source 1, 1) (fun d =>
  let n l i := nth i l 0 in
  write (Target 0, 0) [7; n a 0] (write (Target 0, 1) [n a 1; n c 0] (write (Target 0, 2) [n c 1; 0]
  (write (Target 1, 0) [7; n b 0] (write (Target 1, 1) [n b 1; n d 0] (write (Target 1, 2) [n d 1; 0] done))))))))).
Theorem bound_met D :
  right 2 at_once (targets columns [1; 1]) (want rows columns [0; 0] [1; 1] (fun _ _ => 7)) /\
  length (touched 2 at_once D) = granules_bound 2 rows columns [0; 0] [1; 1].
Proof. split; [|reflexivity]. intros E a I. simpl in I. repeat (destruct I as [<-|I]; [reflexivity|]). destruct I. Qed.

(* If the memory is small, the bound is out of reach.  Bytes are moved as they are: byte k of n lies in granule from k
   of the source and in granule to k of the target.  Who reads and writes each granule once keeps what it has read until
   it is written, so before the first write it keeps a band: all of the source's granules that have a byte of some
   granule of the target. *)
Section Band.
Variables (n : nat) (from to : nat -> nat).
Inductive access := takes (g : nat) | gives (h : nat).
Definition access_eq : forall a b : access, {a = b} + {a <> b}.
Proof. decide equality; apply Nat.eq_dec. Defined.
Definition among (a : access) (s : list access) : bool := if in_dec access_eq a s then true else false.
Definition kept (s : list access) : list nat :=
  filter (fun k => among (takes (from k)) s && negb (among (gives (to k)) s)) (seq 0 n).
Definition serves (s : list access) : Prop :=
  forall k, k < n -> exists s1 s2, s = s1 ++ gives (to k) :: s2 /\ In (takes (from k)) s1.
Definition band_of (h : nat) : list nat :=
  filter (fun k => existsb (fun k' => (to k' =? h) && (from k' =? from k)) (seq 0 n)) (seq 0 n).

(* One place alone has an element that is there once. *)
Lemma one_place {A} (a : A) s1 s2 t1 t2 : NoDup (s1 ++ a :: s2) -> s1 ++ a :: s2 = t1 ++ a :: t2 -> s1 = t1.
Proof.
  revert t1; induction s1 as [|b s1 IH]; simpl; intros t1 ND E.
  - destruct t1 as [|c t1]; auto. simpl in E. injection E as -> E. subst s2. inversion ND; subst. exfalso.
    apply H1. apply in_or_app. right. simpl; auto.
  - destruct t1 as [|c t1]; simpl in E; injection E as -> E.
    + inversion ND; subst. exfalso. apply H1. apply in_or_app. right. simpl; auto.
    + f_equal. inversion ND; subst. eapply IH; eauto.
Qed.

Theorem once_needs_a_band s M : 0 < n -> NoDup s -> serves s ->
  (forall s1 s2, s = s1 ++ s2 -> length (kept s1) <= M) ->
  exists k, k < n /\ length (band_of (to k)) <= M.
Proof.
  intros Hn ND SV FIT.
  set (writes := fun a => existsb (fun k => if access_eq a (gives (to k)) then true else false) (seq 0 n)).
  assert (FIRST : exists s1 a s2, s = s1 ++ a :: s2 /\ writes a = true /\ forall b, In b s1 -> writes b = false).
  { destruct (SV 0 Hn) as [t1 [t2 [E _]]].
    assert (EX : exists a, In a s /\ writes a = true).
    { exists (gives (to 0)). split. { rewrite E. apply in_or_app. right. simpl; auto. }
      apply existsb_exists. exists 0. split. { apply in_seq; lia. } destruct (access_eq _ _); auto. }
    clear - EX. induction s as [|b s IH]; [destruct EX as [a [[] _]]|]. destruct (writes b) eqn:W.
    - exists [], b, s. split; auto. split; auto. intros c [].
    - destruct IH as [s1 [a [s2 [E [Wa N]]]]].
      + destruct EX as [a [[->|I] Wa]]; [congruence|]. exists a; auto.
      + exists (b :: s1), a, s2. simpl. rewrite E. split; auto. split; auto. intros c [<-|I]; auto. }
  destruct FIRST as [s1 [a [s2 [E [W N]]]]]. apply existsb_exists in W as [k0 [K0 W]]. apply in_seq in K0.
  destruct (access_eq a (gives (to k0))) as [->|]; [|discriminate].
  exists k0. split; [lia|]. etransitivity; [|apply (FIT s1 (gives (to k0) :: s2)); auto].
  apply filter_le. intros k Hk B. apply existsb_exists in B as [k' [K' B]].
  apply andb_true_iff in B as [B1 B2]. apply Nat.eqb_eq in B1, B2. apply in_seq in Hk, K'.
  destruct (SV k' ltac:(lia)) as [t1 [t2 [E' I]]]. rewrite B1 in E'.
  assert (s1 = t1) as <-. { eapply one_place; [rewrite <- E; exact ND|rewrite <- E; exact E']. }
  rewrite B2 in I. unfold among. destruct (in_dec access_eq (takes (from k)) s1); [|tauto].
  destruct (in_dec access_eq (gives (to k)) s1) as [J|]; auto. exfalso. apply N in J.
  rewrite <- not_true_iff_false in J. apply J. apply existsb_exists. exists k. split. { apply in_seq; lia. }
  destruct (access_eq _ _); auto.
Qed.
End Band.
