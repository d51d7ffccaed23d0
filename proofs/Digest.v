(* Digests that add: the formula of include/reshard/model/digest.hpp. A byte v at position p adds two entries, both to
   block p / 4096. Slot i = p mod 4096 / 4 gets 256^(p mod 4) * v, and slot 1024 + i gets 256^(p mod 4). R has the keys
   of blocks, and T the keys of slots. The blocks of another array are other blocks. *)
From Coq Require Import ZArith Znumtheory List Lia Permutation Bool.
Import ListNotations.
Open Scope Z_scope.

Record entry := Entry { block : Z; slot : Z; amount : Z }.

Fixpoint total (R T : Z -> Z) (l : list entry) : Z :=
  match l with
  | [] => 0
  | e :: rest => R (block e) * (T (slot e) * amount e) + total R T rest
  end.

(* The amount in one slot of one block. *)
Fixpoint net (b i : Z) (l : list entry) : Z :=
  match l with
  | [] => 0
  | e :: rest => (if (block e =? b) && (slot e =? i) then amount e else 0) + net b i rest
  end.

Definition negated (l : list entry) := map (fun e => Entry (block e) (slot e) (- amount e)) l.

Lemma total_app R T a b : total R T (a ++ b) = total R T a + total R T b.
Proof. induction a; simpl; lia. Qed.

Lemma net_app b i l m : net b i (l ++ m) = net b i l + net b i m.
Proof. induction l; simpl; lia. Qed.

Lemma total_negated R T l : total R T (negated l) = - total R T l.
Proof. induction l; simpl; lia. Qed.

Lemma net_negated b i l : net b i (negated l) = - net b i l.
Proof. induction l as [|e l IH]; simpl; [|destruct ((block e =? b) && (slot e =? i))]; lia. Qed.

Definition with_key (K : Z -> Z) (n k m : Z) : Z := if m =? n then k else K m.

(* The sum in one block, without its key. *)
Fixpoint inner (T : Z -> Z) (b : Z) (l : list entry) : Z :=
  match l with
  | [] => 0
  | e :: rest => (if (block e =? b) then T (slot e) * amount e else 0) + inner T b rest
  end.

(* The total is linear in the key of a block, and the sum in a block is linear in the key of a slot. *)
Lemma total_by_block R T b l y :
  total (with_key R b y) T l = inner T b l * y + total (with_key R b 0) T l.
Proof.
  induction l as [|e l IH]; simpl; [lia|].
  unfold with_key at 1 3. destruct (block e =? b); rewrite IH; lia.
Qed.

Lemma inner_by_slot T b i l x :
  inner (with_key T i x) b l = net b i l * x + inner (with_key T i 0) b l.
Proof.
  induction l as [|e l IH]; simpl; [lia|].
  unfold with_key at 1 3. destruct (block e =? b), (slot e =? i); simpl; rewrite IH; lia.
Qed.

Lemma filtered {A} (f : A -> bool) l : (length (filter f l) <= length l)%nat.
Proof. induction l as [|a l IH]; simpl; [lia|]. destruct (f a); simpl; lia. Qed.

Section Prime.
Variable q : Z.
Hypothesis q_prime : prime q.

Definition digest (R T : Z -> Z) (l : list entry) : Z := total R T l mod q.

Lemma q_positive : 1 < q.
Proof. destruct q_prime; lia. Qed.

(* The digest of two sets is the sum of their digests. *)
Theorem digest_adds R T a b : digest R T (a ++ b) = (digest R T a + digest R T b) mod q.
Proof. unfold digest. rewrite total_app. apply Zplus_mod. Qed.

Theorem digest_of_pieces R T pieces :
  digest R T (concat pieces) = fold_right Z.add 0 (map (digest R T) pieces) mod q.
Proof.
  induction pieces as [|p pieces IH]; simpl; [reflexivity|].
  rewrite digest_adds, IH. pose proof q_positive. rewrite Zplus_mod_idemp_r. reflexivity.
Qed.

Theorem digest_any_order R T a b : Permutation a b -> digest R T a = digest R T b.
Proof. intros P. unfold digest. f_equal. induction P; simpl; lia. Qed.

Theorem digest_of_replicas R T a n :
  digest R T (concat (repeat a n)) = (Z.of_nat n * digest R T a) mod q.
Proof.
  pose proof q_positive. induction n as [|n IH]; [reflexivity|].
  cbn [repeat concat]. rewrite digest_adds, IH, Zplus_mod_idemp_r. f_equal. lia.
Qed.

Lemma digests_equal R T a b : digest R T a = digest R T b <-> (total R T (a ++ negated b)) mod q = 0.
Proof.
  pose proof q_positive. unfold digest. rewrite total_app, total_negated. split; intros E.
  - rewrite Z.add_opp_r, Zminus_mod, E, Z.sub_diag. reflexivity.
  - rewrite Z.add_opp_r in E. apply Z.mod_divide in E; [|lia]. destruct E as [k E].
    replace (total R T a) with (total R T b + k * q) by lia. apply Z_mod_plus_full.
Qed.

Lemma not_divided n : 0 < Z.abs n < q -> ~ (q | n).
Proof. intros B D. apply Z.divide_abs_r, Z.divide_pos_le in D; lia. Qed.

Lemma other_slots R T a : (forall b i, net b i a = 0) -> total R T a = 0.
Proof.
  (* Each entry is moved out with all entries of its slot. *)
  remember (length a) as n eqn:N. revert a N.
  induction n as [n IH] using (well_founded_induction Nat.lt_wf_0). intros a N Z0.
  destruct a as [|e a]; [reflexivity|].
  set (same := fun f => (block f =? block e) && (slot f =? slot e)).
  assert (S : forall l, total R T l =
      R (block e) * (T (slot e) * net (block e) (slot e) l) + total R T (filter (fun f => negb (same f)) l)).
  { induction l as [|f l IHl]; cbn [total net filter]; [lia|].
    change ((block f =? block e) && (slot f =? slot e)) with (same f).
    destruct (same f) eqn:F; cbn [negb total]; rewrite IHl; [|lia].
    apply andb_true_iff in F as [B I]. apply Z.eqb_eq in B, I. rewrite B, I. lia. }
  assert (M : forall b i l, net b i l = 0 -> net b i (filter (fun f => negb (same f)) l) = 0).
  { intros b i l H. destruct ((b =? block e) && (i =? slot e)) eqn:E.
    - apply andb_true_iff in E as [Eb Ei]. apply Z.eqb_eq in Eb, Ei. subst. clear H.
      induction l as [|f l IHl]; cbn [net filter]; [reflexivity|].
      destruct (same f) eqn:F; cbn [negb net]; [exact IHl|]. unfold same in F. rewrite F. exact IHl.
    - rewrite <- H. clear H. induction l as [|f l IHl]; cbn [net filter]; [reflexivity|].
      destruct (same f) eqn:F; cbn [negb net]; [|rewrite IHl; reflexivity].
      apply andb_true_iff in F as [Fb Fi]. apply Z.eqb_eq in Fb, Fi. rewrite Fb, Fi.
      rewrite (Z.eqb_sym (block e) b), (Z.eqb_sym (slot e) i), E. exact IHl. }
  rewrite S, Z0, !Z.mul_0_r, Z.add_0_l. eapply IH; [|reflexivity|intros; apply M; apply Z0].
  subst n. cbn [filter length]. unfold same at 1. rewrite !Z.eqb_refl. cbn [andb negb].
  pose proof (filtered (fun f => negb (same f)) a). lia.
Qed.

(* A fault in one slot is always found, whatever the keys are: they only may not be 0. *)
Theorem one_word_found R T a b n i :
  (forall m j, (m <> n \/ j <> i) -> net m j a = net m j b) ->
  0 < Z.abs (net n i a - net n i b) < q -> 0 < R n < q -> 0 < T i < q ->
  digest R T a <> digest R T b.
Proof.
  intros Same Differ Rn Ti E. apply digests_equal in E. pose proof q_positive.
  set (d := net n i a - net n i b) in *.
  assert (total R T ((a ++ negated b) ++ [Entry n i (- d)]) = 0) as Z0.
  { apply other_slots. intros m j. rewrite !net_app, net_negated. simpl.
    destruct ((n =? m) && (i =? j)) eqn:E1.
    - apply andb_true_iff in E1 as [M J]. apply Z.eqb_eq in M, J. subst. unfold d. lia.
    - rewrite Same; [lia|]. apply andb_false_iff in E1. rewrite !Z.eqb_neq in E1. intuition congruence. }
  rewrite total_app in Z0. simpl in Z0.
  apply Z.mod_divide in E; [|lia].
  assert (q | R n * (T i * d)) as D by (replace (R n * (T i * d)) with (total R T (a ++ negated b)) by lia; exact E).
  apply prime_mult in D; [|exact q_prime]. destruct D as [D|D]; [apply (not_divided (R n)); [lia|exact D]|].
  apply prime_mult in D; [|exact q_prime].
  destruct D as [D|D]; [apply (not_divided (T i)); [lia|exact D]|apply (not_divided d); [exact Differ|exact D]].
Qed.

Definition keys (l : list Z) := NoDup l /\ (forall k, In k l -> 0 <= k < q).

(* A linear equation has at most one key. *)
Lemma one_key m c l : ~ (q | m) -> keys l -> (length (filter (fun k => ((m * k + c) mod q =? 0)%Z) l) <= 1)%nat.
Proof.
  intros M [Once Below]. pose proof q_positive.
  set (good := fun k => (m * k + c) mod q =? 0).
  assert (Equal : forall j k, In j l -> In k l -> good j = true -> good k = true -> j = k).
  { unfold good. intros j k Ij Ik Gj Gk. apply Z.eqb_eq in Gj, Gk.
    apply Z.mod_divide in Gj, Gk; try lia.
    assert (q | m * (j - k)) as D
      by (replace (m * (j - k)) with ((m * j + c) - (m * k + c)) by lia; apply Z.divide_sub_r; auto).
    apply prime_mult in D; [|exact q_prime]. destruct D as [D|D]; [contradiction|].
    specialize (Below j Ij) as Bj. specialize (Below k Ik) as Bk.
    destruct (Z.eq_dec (j - k) 0); [lia|]. exfalso. apply (not_divided (j - k)); [lia|exact D]. }
  destruct (filter good l) as [|j [|k rest]] eqn:F; simpl; try lia. exfalso.
  assert (In j (filter good l) /\ In k (filter good l)) as [Ij Ik] by (rewrite F; simpl; auto).
  apply filter_In in Ij as [Ij Gj], Ik as [Ik Gk].
  pose proof (NoDup_filter good Once) as N. rewrite F in N. inversion N as [|? ? Out]. apply Out. left. auto.
Qed.

Lemma bad_pairs (bad : Z * Z -> bool) (zero : Z -> bool) xs ys :
  (forall x, In x xs -> zero x = false -> (length (filter (fun y => bad (x, y)) ys) <= 1)%nat) ->
  (length (filter bad (list_prod xs ys)) <= length (filter zero xs) * length ys + length xs)%nat.
Proof.
  induction xs as [|x xs IH]; intros One; simpl; [lia|].
  rewrite filter_app, app_length.
  assert (L : length (filter bad (map (fun y => (x, y)) ys)) = length (filter (fun y => bad (x, y)) ys)).
  { clear. induction ys as [|y ys IH]; simpl; [reflexivity|]. destruct (bad (x, y)); simpl; lia. }
  specialize (IH (fun x I => One x (or_intror I))). rewrite L.
  destruct (zero x) eqn:Z0; simpl.
  - assert (length (filter (fun y => bad (x, y)) ys) <= length ys)%nat by apply filtered. lia.
  - specialize (One x (or_introl eq_refl) Z0). lia.
Qed.

(* Two contents differ in a slot. Take any keys xs of that slot and any keys ys of its block. At most |xs| + |ys| of the
   |xs| |ys| pairs give equal digests, whatever all other keys are. With keys drawn evenly the probability is at most
   1 / |xs| + 1 / |ys|. *)
Theorem faults_rare R T a b n i xs ys :
  0 < Z.abs (net n i a - net n i b) < q -> keys xs -> keys ys ->
  (length (filter (fun k => (digest (with_key R n (snd k)) (with_key T i (fst k)) a =?
                            digest (with_key R n (snd k)) (with_key T i (fst k)) b)%Z) (list_prod xs ys))
   <= length xs + length ys)%nat.
Proof.
  intros Differ Kx Ky. pose proof q_positive. set (d := a ++ negated b).
  set (zero := fun x => (net n i d * x + inner (with_key T i 0) n d) mod q =? 0).
  assert (Zeros : (length (filter zero xs) <= 1)%nat).
  { apply one_key; [|exact Kx]. apply not_divided. unfold d. rewrite net_app, net_negated. exact Differ. }
  etransitivity; [apply (bad_pairs _ zero)|nia].
  intros x _ Nonzero. etransitivity;
    [|apply (one_key (inner (with_key T i x) n d) (total (with_key R n 0) (with_key T i x) d) ys); [|exact Ky]].
  - apply Nat.eq_le_incl. f_equal. apply filter_ext. intros y. simpl.
    apply eq_true_iff_eq. rewrite !Z.eqb_eq. rewrite digests_equal. fold d. rewrite total_by_block. reflexivity.
  - intros D. unfold zero in Nonzero. apply Z.eqb_neq in Nonzero. apply Nonzero.
    apply Z.mod_divide; [lia|]. rewrite <- inner_by_slot. exact D.
Qed.

End Prime.

(* Bytes at positions. *)
Definition place (p : Z) : Z := 256 ^ (p mod 4).
Definition entries (bytes : list (Z * Z)) : list entry :=
  flat_map (fun '(p, v) => [Entry (p / 4096) (p mod 4096 / 4) (place p * v);
                            Entry (p / 4096) (1024 + p mod 4096 / 4) (place p)]) bytes.

(* The sum of the values at a position, and how many there are. *)
Fixpoint value (p : Z) (l : list (Z * Z)) : Z :=
  match l with [] => 0 | (s, v) :: rest => (if s =? p then v else 0) + value p rest end.
Fixpoint copies (p : Z) (l : list (Z * Z)) : Z :=
  match l with [] => 0 | (s, _) :: rest => (if s =? p then 1 else 0) + copies p rest end.

Definition bytes_only (l : list (Z * Z)) := forall p v, In (p, v) l -> 0 <= v <= 255.

(* The four bytes of a word. *)
Definition spot (b i k : Z) : Z := 4096 * b + 4 * i + k.
Definition word (f : Z -> Z) (b i : Z) : Z :=
  f (spot b i 0) + 256 * f (spot b i 1) + 65536 * f (spot b i 2) + 16777216 * f (spot b i 3).

Lemma position p : exists b i k, p = spot b i k /\ 0 <= i < 1024 /\ 0 <= k < 4 /\
  p / 4096 = b /\ p mod 4096 / 4 = i /\ p mod 4 = k.
Proof.
  exists (p / 4096), (p mod 4096 / 4), (p mod 4). unfold spot. Z.div_mod_to_equations. lia.
Qed.

Lemma spots b i k c j m : 0 <= i < 1024 -> 0 <= j < 1024 -> 0 <= k < 4 -> 0 <= m < 4 ->
  (spot b i k =? spot c j m) = (b =? c) && (i =? j) && (k =? m).
Proof.
  intros. apply eq_true_iff_eq. rewrite !andb_true_iff, !Z.eqb_eq. unfold spot. split; [|intuition congruence].
  intros E. assert (b = c) by lia. assert (i = j) by lia. lia.
Qed.

(* One byte, seen from a word: in one of its four places, or not in it. *)
Lemma one_byte b i p v : 0 <= i < 1024 ->
  (if (p / 4096 =? b) && (p mod 4096 / 4 =? i) then place p * v else 0) =
  word (fun s => if (p =? s) then v else 0) b i.
Proof.
  intros Small. destruct (position p) as [c [j [k [P [J [K [-> [-> M]]]]]]]].
  unfold place. rewrite M, P. clear M P. unfold word. rewrite !spots by lia.
  destruct ((c =? b) && (j =? i)); [|cbn [andb]; lia].
  assert (k = 0 \/ k = 1 \/ k = 2 \/ k = 3) as [?|[?|[?|?]]] by lia; subst k; cbn [andb Z.eqb Pos.eqb];
    change (256 ^ 0) with 1; change (256 ^ 1) with 256; change (256 ^ 2) with 65536; change (256 ^ 3) with 16777216; lia.
Qed.

Lemma word_adds f g b i : word f b i + word g b i = word (fun p => f p + g p) b i.
Proof. unfold word. lia. Qed.

Lemma net_values b i l : 0 <= i < 1024 -> net b i (entries l) = word (fun p => value p l) b i.
Proof.
  intros Small. induction l as [|[p v] l IH]; [reflexivity|].
  cbn [entries flat_map app net block slot amount value]. fold (entries l). rewrite IH.
  assert ((1024 + p mod 4096 / 4 =? i) = false) as J.
  { apply Z.eqb_neq. destruct (position p) as [c [j [k [P [J [K [_ [-> _]]]]]]]]. lia. }
  rewrite J, andb_false_r, (one_byte b i p v Small). rewrite Z.add_0_l. apply word_adds.
Qed.

Lemma net_copies b i l : 0 <= i < 1024 -> net b (1024 + i) (entries l) = word (fun p => copies p l) b i.
Proof.
  intros Small. induction l as [|[p v] l IH]; [reflexivity|].
  cbn [entries flat_map app net block slot amount copies]. fold (entries l). rewrite IH.
  assert ((p mod 4096 / 4 =? 1024 + i) = false) as J.
  { apply Z.eqb_neq. destruct (position p) as [c [j [k [P [H [K [_ [-> _]]]]]]]]. lia. }
  assert ((1024 + p mod 4096 / 4 =? 1024 + i) = (p mod 4096 / 4 =? i)) as K.
  { apply eq_true_iff_eq. rewrite !Z.eqb_eq. lia. }
  rewrite J, andb_false_r, K, <- (Z.mul_1_r (place p)), (one_byte b i p 1 Small), Z.add_0_l. apply word_adds.
Qed.

(* A word of digits that are not all 0 is not 0, and not large. *)
Lemma word_differs f b i k : 0 <= k < 4 -> (forall p, -255 <= f p <= 255) -> f (spot b i k) <> 0 ->
  0 < Z.abs (word f b i) < 4294967296.
Proof.
  intros K B N. unfold word.
  pose proof (B (spot b i 0)). pose proof (B (spot b i 1)). pose proof (B (spot b i 2)). pose proof (B (spot b i 3)).
  assert (k = 0 \/ k = 1 \/ k = 2 \/ k = 3) as [?|[?|[?|?]]] by lia; subst k; lia.
Qed.

(* The right content holds each position at most once. Another content, which holds each position at most 255 times,
   differs in how often it holds a position, or in a value. Then some slot differs, so its digest is rarely the same. *)
Theorem contents_differ right other :
  (forall p, copies p right <= 1) -> (forall p, copies p other <= 255) -> bytes_only right -> bytes_only other ->
  (exists p, copies p right <> copies p other \/ value p right <> value p other) ->
  exists b i, 0 < Z.abs (net b i (entries right) - net b i (entries other)) < 4294967296.
Proof.
  intros Once Few BytesR BytesO [p D].
  assert (Least : forall s l, 0 <= copies s l)
    by (intros s l; induction l as [|[t v] l IH]; cbn [copies]; [lia|destruct (t =? s)]; lia).
  assert (Range : forall s l, bytes_only l -> 0 <= value s l <= 255 * copies s l).
  { intros s l. induction l as [|[t v] l IH]; cbn [value copies]; intros B; [lia|].
    pose proof (B t v (or_introl eq_refl)). specialize (IH (fun q w I => B q w (or_intror I))).
    destruct (t =? s); lia. }
  destruct (position p) as [b [i [k [P [I [K _]]]]]].
  set (f := fun s => copies s right - copies s other).
  set (g := fun s => value s right - value s other).
  assert (F : net b (1024 + i) (entries right) - net b (1024 + i) (entries other) = word f b i)
    by (rewrite !net_copies by exact I; unfold word, f; lia).
  assert (G : net b i (entries right) - net b i (entries other) = word g b i)
    by (rewrite !net_values by exact I; unfold word, g; lia).
  assert (Small : forall s, -255 <= f s <= 255)
    by (intros s; unfold f; pose proof (Once s); pose proof (Few s); pose proof (Least s right); pose proof (Least s other); lia).
  destruct (Z.eq_dec (word f b i) 0) as [Zero|Nonzero].
  - (* Every byte of the word is there as often as it should be, so at most once. *)
    exists b, i. rewrite G.
    assert (forall j, 0 <= j < 4 -> f (spot b i j) = 0) as Same.
    { intros j J. destruct (Z.eq_dec (f (spot b i j)) 0); [assumption|].
      pose proof (word_differs f b i j J Small n). lia. }
    assert (Copies : forall j, 0 <= j < 4 -> -255 <= g (spot b i j) <= 255).
    { intros j J. specialize (Same j J). unfold f in Same. unfold g. set (s := (spot b i j)) in *.
      pose proof (Range s right BytesR). pose proof (Range s other BytesO). pose proof (Once s). lia. }
    set (h := fun s => Z.max (-255) (Z.min 255 (g s))).
    assert (word g b i = word h b i) as ->.
    { unfold word, h. pose proof (Copies 0 ltac:(lia)). pose proof (Copies 1 ltac:(lia)).
      pose proof (Copies 2 ltac:(lia)). pose proof (Copies 3 ltac:(lia)). lia. }
    apply (word_differs h b i k K); [unfold h; lia|]. rewrite <- P. specialize (Same k K). rewrite <- P in Same.
    specialize (Copies k K). rewrite <- P in Copies. unfold f in Same. unfold h, g in *. lia.
  - exists b, (1024 + i). rewrite F.
    destruct (Z.eq_dec (f (spot b i 0)) 0) as [E0|N0]; [|apply (word_differs f b i 0 ltac:(lia) Small N0)].
    destruct (Z.eq_dec (f (spot b i 1)) 0) as [E1|N1]; [|apply (word_differs f b i 1 ltac:(lia) Small N1)].
    destruct (Z.eq_dec (f (spot b i 2)) 0) as [E2|N2]; [|apply (word_differs f b i 2 ltac:(lia) Small N2)].
    destruct (Z.eq_dec (f (spot b i 3)) 0) as [E3|N3]; [|apply (word_differs f b i 3 ltac:(lia) Small N3)].
    exfalso. apply Nonzero. unfold word. lia.
Qed.

(* The same in one statement: the pairs of keys for which the digests are equal. *)
Theorem digest_finds q R T right other :
  prime q -> 4294967296 <= q ->
  (forall p, copies p right <= 1) -> (forall p, copies p other <= 255) -> bytes_only right -> bytes_only other ->
  (exists p, copies p right <> copies p other \/ value p right <> value p other) ->
  exists n i, forall xs ys, keys q xs -> keys q ys ->
  (length (filter (fun k => (digest q (with_key R n (snd k)) (with_key T i (fst k)) (entries right) =?
                             digest q (with_key R n (snd k)) (with_key T i (fst k)) (entries other))%Z) (list_prod xs ys))
   <= length xs + length ys)%nat.
Proof.
  intros Prime Large A B C D E. destruct (contents_differ right other A B C D E) as [n [i N]].
  exists n, i. intros xs ys Kx Ky. apply faults_rare; auto. lia.
Qed.
