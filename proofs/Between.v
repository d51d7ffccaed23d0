(* Plans between meshes: a layout and the number of the device at each of its places.  Steps on one mesh are those of
   Step.v; from mesh to mesh lead an exchange and a permute.
   stands P                who stands where; a device that stands nowhere in P has no tile there
   foreign_between P P'    the most that a device wants in P' and does not hold in P
   check_between           the judge
   check_between_sound     what an accepted plan is sure to do *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check.

Record placed := Placed { lay : layout; numbers : list nat }.
Definition stands (P : placed) : list (nat * dev) := combine (numbers P) (devices (mesh_of (lay P))).
Definition placed_ok (P : placed) : bool :=
  layout_ok (lay P) && (length (numbers P) =? length (devices (mesh_of (lay P)))) && nodupb (numbers P).
Definition place_in (s : list (nat * dev)) (d : nat) : option dev := option_map snd (find (fun p => fst p =? d) s).
Definition place_of (P : placed) (d : nat) : option dev := place_in (stands P) d.
Definition number_of (P : placed) (x : dev) : nat :=
  match find (fun p => same_list (snd p) x) (stands P) with Some p => fst p | None => 0 end.

Lemma combine_left {A B} (l : list A) (l' : list B) a b b' : NoDup l ->
  In (a, b) (combine l l') -> In (a, b') (combine l l') -> b = b'.
Proof.
  intros ND; revert l'; induction ND as [|c l N ND IH]; destruct l' as [|e l']; simpl; try tauto.
  intros [E|I] [E'|I']; try congruence; eauto.
  - inversion E; subst. apply in_combine_l in I'. tauto.
  - inversion E'; subst. apply in_combine_l in I. tauto.
Qed.
Lemma combine_right {A B} (l : list A) (l' : list B) a a' b : NoDup l' ->
  In (a, b) (combine l l') -> In (a', b) (combine l l') -> a = a'.
Proof.
  intros ND; revert l; induction ND as [|c l' N ND IH]; destruct l as [|e l]; simpl; try tauto.
  intros [E|I] [E'|I']; try congruence; eauto.
  - inversion E; subst. apply in_combine_r in I'. tauto.
  - inversion E'; subst. apply in_combine_r in I. tauto.
Qed.
Lemma combine_total {A B} (l : list A) (l' : list B) b : length l = length l' -> In b l' ->
  exists a, In (a, b) (combine l l').
Proof.
  revert l; induction l' as [|c l' IH]; destruct l as [|e l]; simpl; intros E I; try tauto; try discriminate.
  destruct I as [->|I]; [exists e; auto|]. destruct (IH l ltac:(lia) I) as [a Ha]. exists a; auto.
Qed.

Lemma placed_ok_inv P : placed_ok P = true ->
  layout_ok (lay P) = true /\ length (numbers P) = length (devices (mesh_of (lay P))) /\ NoDup (numbers P).
Proof. unfold placed_ok. rewrite !andb_true_iff, Nat.eqb_eq, nodupb_ok. tauto. Qed.
Lemma stands_valid P d x : In (d, x) (stands P) -> valid (mesh_of (lay P)) x.
Proof. intros I. apply in_combine_r in I. apply device_valid; auto. Qed.
Lemma stands_place P d x : placed_ok P = true -> In (d, x) (stands P) -> place_of P d = Some x.
Proof.
  intros OK I. apply placed_ok_inv in OK as [_ [_ ND]]. unfold place_of, place_in.
  destruct (find (fun p => fst p =? d) (stands P)) as [[d' x']|] eqn:F.
  - apply find_some in F as [I' E]. simpl in *. apply Nat.eqb_eq in E. subst d'. f_equal.
    symmetry. eapply combine_left; eauto.
  - exfalso. pose proof (find_none _ _ F _ I) as E. simpl in E. rewrite Nat.eqb_refl in E. discriminate.
Qed.
Lemma place_stands P d x : place_of P d = Some x -> In (d, x) (stands P).
Proof.
  unfold place_of, place_in. destruct (find (fun p => fst p =? d) (stands P)) as [[d' x']|] eqn:F; simpl; [|discriminate].
  intros E; inversion E; subst. apply find_some in F as [I E']. simpl in E'. apply Nat.eqb_eq in E'. subst; auto.
Qed.
Lemma number_stands P d x : placed_ok P = true -> In (d, x) (stands P) -> number_of P x = d.
Proof.
  intros OK I. unfold number_of. destruct (find (fun p => same_list (snd p) x) (stands P)) as [[d' x']|] eqn:F.
  - apply find_some in F as [I' E]. simpl in *. apply same_list_ok in E. subst x'.
    eapply combine_right; [apply nodup_box|exact I'|exact I].
  - exfalso. pose proof (find_none _ _ F _ I) as E. simpl in E.
    rewrite (proj2 (same_list_ok x x) eq_refl) in E. discriminate.
Qed.
Lemma valid_stands P x : placed_ok P = true -> valid (mesh_of (lay P)) x -> In (number_of P x, x) (stands P).
Proof.
  intros OK Hx. pose proof OK as OKi. apply placed_ok_inv in OKi as [_ [HL _]].
  destruct (combine_total (numbers P) (devices (mesh_of (lay P))) x HL) as [d I]; [apply device_valid; auto|].
  rewrite (number_stands P d x OK I). exact I.
Qed.

(* elements in both device y of one mesh and device x of another, dimension by dimension *)
Fixpoint shared (m : mesh) (t : list dim) (y : dev) (m' : mesh) (t' : list dim) (x : dev) : nat :=
  match t, t' with
  | d :: t, e :: t' =>
      (Nat.min (ends m d y) (ends m' e x) - Nat.max (begins m d y) (begins m' e x)) * shared m t y m' t' x
  | _, _ => 1
  end.
Definition foreign_on (s : list (nat * dev)) (L L' : layout) (p : nat * dev) : nat :=
  let (d, x) := p in
  wanted (mesh_of L') (dims L') x -
  match place_in s d with
  | Some y =>
      if ev (mesh_of L) (unreduced L) y =? ev (mesh_of L') (unreduced L') x
      then shared (mesh_of L) (dims L) y (mesh_of L') (dims L') x else 0
  | None => 0
  end.
Definition foreign_between (P P' : placed) : nat :=
  let s := stands P in fold_right Nat.max 0 (map (foreign_on s (lay P) (lay P')) (stands P')).

(* y holds the index in every dimension *)
Fixpoint held_ats m (t : list dim) y m' (t' : list dim) x : list (nat -> bool) :=
  match t, t' with d :: t, e :: t' => held_at m d y m' e x :: held_ats m t y m' t' x | _, _ => [] end.

Lemma held_ats_length m t y m' t' x : length t = length t' -> length (held_ats m t y m' t' x) = length t'.
Proof. revert t'; induction t; destruct t'; simpl; intros; try lia. rewrite IHt; lia. Qed.
Lemma sat_held m t y m' t' x l : length l = length t' -> same_shape t t' ->
  sat (held_ats m t y m' t' x) l = true <-> holds m t y (gidx m' t' x l).
Proof.
  intros H2 SH. revert t' l H2 SH; induction t as [|d t IH]; destruct t' as [|e t'], l as [|i l];
    unfold same_shape in *; simpl; intros H2 SH; try discriminate; try (simpl in H2; lia).
  - split; auto. intros _. split; auto. split; auto. simpl; lia.
  - injection SH as E1 E2. rewrite andb_true_iff, (IH t' l ltac:(lia) E2). unfold held_at, inside, holds, in_shape.
    rewrite andb_true_iff, Nat.ltb_lt, Nat.eqb_eq. simpl. split.
    + intros [[H3 H4] [[H5 H6] H7]]. split; [split; [lia|]|].
      * intros [|n] Hn; simpl; [unfold dim_at; simpl; lia|]. apply H6. lia.
      * rewrite H4, H7; auto.
    + intros [[H3 H4] H5]. injection H5 as H5 H6. repeat split; auto.
      * specialize (H4 0 ltac:(lia)). unfold dim_at in H4; simpl in H4. lia.
      * intros n Hn. apply (H4 (S n)). lia.
Qed.
Lemma held_inside m t y m' t' x l : length t = length t' -> length l = length t' ->
  sat (held_ats m t y m' t' x) l = true -> sat (insides m' t' x) l = true.
Proof.
  revert t' l; induction t as [|d t IH]; destruct t' as [|e t'], l as [|i l]; simpl; intros HL H2 H; try lia; auto.
  apply andb_true_iff in H as [H1 H3]. unfold held_at in H1. apply andb_true_iff in H1 as [H1 _].
  rewrite H1. apply IH; auto.
Qed.
Lemma counts_shared m t y m' t' x : mesh_ok m = true -> same_shape t t' ->
  counts (held_ats m t y m' t' x) (extents_of m' t') = shared m t y m' t' x.
Proof.
  intros Hm. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; intros SH; unfold same_shape in SH;
    simpl in SH; try discriminate; auto.
  injection SH as E1 E2. simpl. rewrite count_held, IH by auto. auto.
Qed.

(* the elements of its next tile that device d, now at x, does not hold *)
Definition here (P P' : placed) (d : nat) (x : dev) (l : idx) : bool :=
  match place_of P d with
  | Some y =>
      (ev (mesh_of (lay P)) (unreduced (lay P)) y =? ev (mesh_of (lay P')) (unreduced (lay P')) x) &&
      sat (held_ats (mesh_of (lay P)) (dims (lay P)) y (mesh_of (lay P')) (dims (lay P')) x) l
  | None => false
  end.
Definition missing (P P' : placed) (d : nat) (x : dev) : list idx :=
  filter (fun l => negb (here P P' d x l)) (tile (mesh_of (lay P')) (dims (lay P')) x).

Lemma filter_true {A} (l : list A) : filter (fun _ => true) l = l.
Proof. apply filter_all; auto. Qed.
Lemma missing_count P P' d x : placed_ok P = true -> same_shape (dims (lay P)) (dims (lay P')) ->
  length (missing P P' d x) = foreign_on (stands P) (lay P) (lay P') (d, x).
Proof.
  intros OK SH. apply placed_ok_inv in OK as [OK _]. apply layout_ok_iff in OK as [Hm _].
  unfold missing, here, foreign_on, place_of. set (L := lay P) in *. set (L' := lay P') in *.
  rewrite <- tile_length. destruct (place_in (stands P) d) as [y|]; [|simpl; rewrite filter_true; lia].
  destruct (ev (mesh_of L) (unreduced L) y =? ev (mesh_of L') (unreduced L') x); simpl; [|rewrite filter_true; lia].
  set (m := mesh_of L) in *. set (m' := mesh_of L') in *. set (t := dims L) in *. set (t' := dims L') in *.
  pose proof (same_shape_length _ _ SH) as HL. rewrite <- counts_shared by auto.
  rewrite <- (counts_filter (held_ats m t y m' t' x))
    by (unfold extents_of; rewrite held_ats_length, map_length; auto).
  rewrite <- (filter_split (sat (held_ats m t y m' t' x)) (tile m' t' x)) at 1.
  replace (filter (sat (held_ats m t y m' t' x)) (tile m' t' x))
    with (filter (sat (held_ats m t y m' t' x)) (box (extents_of m' t'))); [lia|].
  unfold tile. rewrite filter_filter. apply filter_ext_in. intros l Hl. apply in_box in Hl as [Ll _].
  unfold extents_of in Ll. rewrite map_length in Ll.
  destruct (sat (held_ats m t y m' t' x) l) eqn:E; [|rewrite andb_false_r; auto].
  rewrite (held_inside m t y m' t' x l); auto.
Qed.
Lemma foreign_on_le P P' p : In p (stands P') -> foreign_on (stands P) (lay P) (lay P') p <= foreign_between P P'.
Proof.
  unfold foreign_between. induction (stands P') as [|q s IH]; simpl; [tauto|]. intros [->|I]; [lia|].
  specialize (IH I). lia.
Qed.
Lemma foreign_between_le P P' : foreign_between P P' <= tile_elements (lay P').
Proof.
  unfold foreign_between. induction (stands P') as [|[d x] s IH]; [simpl; lia|]. cbn [map fold_right].
  assert (foreign_on (stands P) (lay P) (lay P') (d, x) <= tile_elements (lay P')); [|lia].
  unfold foreign_on. rewrite <- tile_length. pose proof (tile_length_le (mesh_of (lay P')) (dims (lay P')) x).
  unfold tile_elements. lia.
Qed.

(* From mesh to mesh: device d, at x in the next mesh, reads element g from itself where it holds it, else from a
   device that does. *)
Definition cross_dev (P P' : placed) (d : nat) (x : dev) (g : idx) : dev :=
  setdims (mesh_of (lay P)) (full (lay P))
    (quot (mesh_of (lay P)) (full (lay P)) (ev (mesh_of (lay P')) (unreduced (lay P')) x :: g))
    (match place_of P d with Some y => y | None => zero_dev (mesh_of (lay P)) end).
Definition cross {V} (P P' : placed) (S : state V) : state V := fun x l =>
  let g := gidx (mesh_of (lay P')) (dims (lay P')) x l in
  S (cross_dev P P' (number_of P' x) x g) (rem (mesh_of (lay P)) (dims (lay P)) g).
Definition received_cross (P P' : placed) (d : nat) (x : dev) : nat :=
  length (filter (fun l =>
    negb (number_of P (cross_dev P P' d x (gidx (mesh_of (lay P')) (dims (lay P')) x l)) =? d))
    (tile (mesh_of (lay P')) (dims (lay P')) x)).

Lemma cross_holds P P' d x g : layout_ok (lay P) = true -> same_shape (dims (lay P)) (dims (lay P')) ->
  summand_count (lay P) = summand_count (lay P') -> valid (mesh_of (lay P')) x -> in_shape (dims (lay P')) g ->
  valid (mesh_of (lay P)) (cross_dev P P' d x g) /\
  holds (mesh_of (lay P)) (dims (lay P)) (cross_dev P P' d x g) g /\
  ev (mesh_of (lay P)) (unreduced (lay P)) (cross_dev P P' d x g) = ev (mesh_of (lay P')) (unreduced (lay P')) x.
Proof.
  intros OK SH SU Hx Hg. apply layout_ok_iff in OK as [Hm W].
  assert (HS : in_shape (full (lay P)) (ev (mesh_of (lay P')) (unreduced (lay P')) x :: g)).
  { apply same_shape_sym in SH. pose proof (in_shape_same _ _ _ SH Hg) as [HL HB].
    split. { simpl; lia. } intros [|i] Hi; simpl.
    - rewrite SU. apply ev_lt; auto.
    - apply HB. simpl in Hi; lia. }
  assert (B : valid (mesh_of (lay P)) (match place_of P d with Some y => y | None => zero_dev (mesh_of (lay P)) end)).
  { destruct (place_of P d) as [y|] eqn:E; [|apply zero_valid; auto].
    eapply stands_valid, place_stands; eauto. }
  destruct (setdims_holds _ _ _ _ Hm W B HS) as [V1 H1].
  fold (cross_dev P P' d x g) in V1, H1. apply holds_full in H1 as [_ [H2 H3]]; auto.
Qed.

Lemma cross_sound {V} (M : monoid V) P P' G (S : state V) : layout_ok (lay P) = true ->
  same_shape (dims (lay P)) (dims (lay P')) -> summand_count (lay P) = summand_count (lay P') ->
  represents M (lay P) G S -> represents M (lay P') G (cross P P' S).
Proof.
  intros OK SH SU [A [D T]]. exists A. split.
  - intros x l Hx Hl. unfold cross. destruct (tile_holds _ _ _ _ Hl) as [[Hs _] _].
    destruct (cross_holds P P' (number_of P' x) x _ OK SH SU Hx Hs) as [V1 [H1 E1]].
    rewrite (denotes_holds _ A S _ _ OK D V1 H1), E1. reflexivity.
  - intros g Hg. rewrite <- T by (eapply in_shape_same; [apply same_shape_sym; eauto|auto]).
    unfold total. rewrite SU. reflexivity.
Qed.

(* No device fetches what it holds. *)
Lemma received_cross_le P P' d x : placed_ok P = true -> same_shape (dims (lay P)) (dims (lay P')) ->
  summand_count (lay P) = summand_count (lay P') -> valid (mesh_of (lay P')) x ->
  received_cross P P' d x <= foreign_on (stands P) (lay P) (lay P') (d, x).
Proof.
  intros OK SH SU Hx. rewrite <- missing_count by auto. unfold received_cross, missing.
  pose proof OK as OKi. apply placed_ok_inv in OKi as [OKl _]. pose proof OKl as OKi. apply layout_ok_iff in OKi as [Hm W].
  apply filter_le. intros l Hl N. apply negb_true_iff in N. apply negb_true_iff.
  destruct (here P P' d x l) eqn:HE; auto. exfalso. unfold here in HE.
  destruct (place_of P d) as [y|] eqn:PL; [|discriminate]. apply andb_true_iff in HE as [E HS].
  apply Nat.eqb_eq in E. apply in_tile_list in Hl. apply sat_held in HS; [|apply Hl|auto].
  pose proof (place_stands _ _ _ PL) as I. pose proof (stands_valid _ _ _ I) as Hy.
  assert (EY : cross_dev P P' d x (gidx (mesh_of (lay P')) (dims (lay P')) x l) = y).
  { unfold cross_dev. rewrite PL. apply setdims_home; auto. apply holds_full; auto.
    split; [|split; auto]. rewrite SU. apply ev_lt; auto. }
  rewrite EY, (number_stands P d y OK I), Nat.eqb_refl in N. discriminate.
Qed.

(* The judge. *)
Definition same_place (P P' : placed) : bool := same_mesh (lay P) (lay P') && same_list (numbers P) (numbers P').
Definition cross_rule (P : placed) (k : kind) (P' : placed) : bool :=
  match k with
  | exchange => summand_count (lay P) =? summand_count (lay P')
  | permute => (summand_count (lay P) =? summand_count (lay P')) && same_set (numbers P) (numbers P') &&
      same_list (map (shard_count (mesh_of (lay P))) (dims (lay P)))
                (map (shard_count (mesh_of (lay P'))) (dims (lay P')))
  | _ => false
  end.
Definition type_placed (P : placed) (k : kind) (P' : placed) : bool :=
  if same_place P P' then type_step (lay P) k (lay P')
  else placed_ok P' && same_array (lay P) (lay P') && cross_rule P k P'.
Definition certified_placed (k : kind) (P P' : placed) : nat :=
  if same_place P P' then certified k (lay P) (lay P')
  else let n := foreign_between P P' in
       match k with permute => if n =? 0 then 0 else tile_elements (lay P') | _ => n end.

Record placed_plan := Placed_plan { begins_at : placed; ends_at : placed; way : list (kind * placed) }.
Fixpoint walk_placed (bound : option nat) (target : placed) (n : nat) (P : placed) (p : list (kind * placed))
  (v : verdict) : answer :=
  match p with
  | [] => if same_place P target && same_layout (lay P) (lay target) then Accept v else Reject wrong_end
  | (k, P') :: r =>
      if type_placed P k P' then
        if within bound (tile_elements (lay P'))
        then walk_placed bound target (S n) P' r
               (Verdict (Nat.max (peak v) (tile_elements (lay P'))) (received_total v + certified_placed k P P'))
        else Reject (over_bound n)
      else Reject (not_typed n)
  end.
Definition check_between (p : placed_plan) (bound : option nat) : answer :=
  if negb (placed_ok (begins_at p)) then Reject bad_source
  else if negb (placed_ok (ends_at p)) then Reject bad_target
  else if negb (same_array (lay (begins_at p)) (lay (ends_at p))) then Reject other_array
  else if negb (within bound (tile_elements (lay (begins_at p)))) then Reject (over_bound 0)
  else walk_placed bound (ends_at p) 1 (begins_at p) (way p) (Verdict (tile_elements (lay (begins_at p))) 0).

(* the effect of a plan, and the elements that device d receives *)
Fixpoint run_placed {V} (M : monoid V) (P : placed) (p : list (kind * placed)) (S : state V) : state V :=
  match p with
  | [] => S
  | (k, P') :: r =>
      run_placed M P' r (if same_place P P' then exec M k (lay P) (lay P') S else cross P P' S)
  end.
Fixpoint received_way (P : placed) (p : list (kind * placed)) (d : nat) : nat :=
  match p with
  | [] => 0
  | (k, P') :: r =>
      match place_of P' d with
      | Some x => if same_place P P' then received k (lay P) (lay P') x else received_cross P P' d x
      | None => 0
      end + received_way P' r d
  end.

Lemma type_placed_ok P k P' : placed_ok P = true -> type_placed P k P' = true -> placed_ok P' = true.
Proof.
  unfold type_placed. intros OK T. destruct (same_place P P') eqn:SP.
  - apply andb_true_iff in SP as [E1 E2]. apply same_mesh_ok in E1. apply same_list_ok in E2.
    apply type_step_inv in T as [OK' _]. unfold placed_ok in *. rewrite <- E1, <- E2, OK'.
    apply andb_true_iff in OK as [OK N]. apply andb_true_iff in OK as [_ LN]. rewrite N, LN. auto.
  - apply andb_true_iff in T as [T _]. apply andb_true_iff in T as [T _]. auto.
Qed.
Lemma cross_rule_summands P k P' : cross_rule P k P' = true -> summand_count (lay P) = summand_count (lay P').
Proof.
  destruct k; simpl; try discriminate; intros H.
  - apply andb_true_iff in H as [H _]. apply andb_true_iff in H as [H _]. apply Nat.eqb_eq; auto.
  - apply Nat.eqb_eq; auto.
Qed.

Lemma walk_placed_sound bound tgt n P p v w : placed_ok P = true -> walk_placed bound tgt n P p v = Accept w ->
  peak v <= peak w /\ (within bound (peak v) = true -> within bound (peak w) = true) /\
  (forall P', In P' (map snd p) -> tile_elements (lay P') <= peak w) /\
  (forall V (M : monoid V) G S, represents M (lay P) G S -> represents M (lay tgt) G (run_placed M P p S)) /\
  (forall d, received_total v + received_way P p d <= received_total w).
Proof.
  revert n P v; induction p as [|[k P1] p IH]; cbn [walk_placed]; intros n P v OK H.
  - destruct (same_place P tgt && same_layout (lay P) (lay tgt)) eqn:E; [|discriminate].
    apply andb_true_iff in E as [_ E]. apply same_layout_ok in E. inversion H; subst.
    split; [lia|]. split; [auto|]. split; [intros P' []|]. split; [|simpl; intros; lia].
    intros V M G S R. simpl. rewrite <- E. exact R.
  - destruct (type_placed P k P1) eqn:T; [|discriminate].
    destruct (within bound (tile_elements (lay P1))) eqn:B; [|discriminate].
    pose proof (type_placed_ok _ _ _ OK T) as OK1.
    destruct (IH _ _ _ OK1 H) as [H2 [H3 [H4 [H5 H6]]]]. cbn [peak received_total] in *. clear IH.
    pose proof (proj1 (placed_ok_inv _ OK)) as OKl.
    split; [lia|]. split; [|split; [|split]].
    + intros Bv. apply H3. destruct bound as [b|]; simpl in *; auto.
      apply Nat.leb_le in B, Bv. apply Nat.leb_le. lia.
    + intros P' [<-|I]; auto. simpl. lia.
    + intros V M G S R. apply H5. unfold type_placed in T. destruct (same_place P P1) eqn:SP.
      * apply step_sound; auto.
      * apply andb_true_iff in T as [T C]. apply andb_true_iff in T as [_ SA]. apply same_array_ok in SA.
        apply cross_sound; auto. eapply cross_rule_summands; eauto.
    + intros d. specialize (H6 d). cbn [received_way].
      assert (match place_of P1 d with
              | Some x => if same_place P P1 then received k (lay P) (lay P1) x else received_cross P P1 d x
              | None => 0 end <= certified_placed k P P1); [|lia].
      destruct (place_of P1 d) as [x|] eqn:PL; [|lia]. pose proof (place_stands _ _ _ PL) as I.
      pose proof (stands_valid _ _ _ I) as Hx. unfold type_placed in T. unfold certified_placed.
      destruct (same_place P P1) eqn:SP. { apply received_certified; auto. }
      apply andb_true_iff in T as [T C]. apply andb_true_iff in T as [_ SA]. apply same_array_ok in SA.
      pose proof (received_cross_le P P1 d x OK SA (cross_rule_summands _ _ _ C) Hx) as R.
      pose proof (foreign_on_le P P1 _ I). pose proof (foreign_between_le P P1). cbv zeta.
      destruct k; try lia. destruct (Nat.eqb_spec (foreign_between P P1) 0); lia.
Qed.

(* An accepted plan delivers the same array in the target layout on the target's devices; no tile on the way is above
   the peak, which is within the bound; and no device of any mesh receives more than the certified number. *)
Theorem check_between_sound p bound v : check_between p bound = Accept v ->
  (forall V (M : monoid V) (G : idx -> V) S, represents M (lay (begins_at p)) G S ->
     represents M (lay (ends_at p)) G (run_placed M (begins_at p) (way p) S)) /\
  (forall P x, In P (begins_at p :: map snd (way p)) -> length (tile (mesh_of (lay P)) (dims (lay P)) x) <= peak v) /\
  (forall b, bound = Some b -> peak v <= b) /\
  (forall d, received_way (begins_at p) (way p) d <= received_total v).
Proof.
  unfold check_between. intros H.
  destruct (placed_ok (begins_at p)) eqn:O1; [|discriminate]. destruct (placed_ok (ends_at p)); [|discriminate].
  destruct (same_array _ _); [|discriminate].
  destruct (within bound (tile_elements (lay (begins_at p)))) eqn:B; [|discriminate]. cbn [negb] in H.
  destruct (walk_placed_sound _ _ _ _ _ _ _ O1 H) as [H2 [H3 [H4 [H5 H6]]]]. cbn [peak received_total] in *.
  split; auto. split; [|split; auto].
  - intros P x [<-|I]; (etransitivity; [apply tile_length_le|]); [exact H2|apply H4; auto].
  - intros b ->. specialize (H3 B). simpl in H3. apply Nat.leb_le; auto.
Qed.
