(* The judge.  It types every step again, adds everything up again, and compares the end with the target.
   check_plan p bound   the verdict on a plan: its peak and the certified number of received elements, or a reason
   check_plan_sound     what an accepted plan is sure to do *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received.

Record plan := Plan { source : layout; target : layout; steps : list step }.
Record verdict := Verdict { peak : nat; received_total : nat }.
Inductive reason :=
| bad_source | bad_target | other_array
| not_typed (step : nat) | over_bound (step : nat) | wrong_end.
Inductive answer := Accept (v : verdict) | Reject (r : reason).

Definition dim_eqb (d e : dim) : bool := (extent d =? extent e) && same_atoms d e.
Definition same_layout (L L' : layout) : bool :=
  same_mesh L L' && same_unreduced L L' && forall2b dim_eqb (dims L) (dims L').
Definition within (bound : option nat) (n : nat) : bool :=
  match bound with Some b => n <=? b | None => true end.

Fixpoint walk (bound : option nat) (target : layout) (n : nat) (L : layout) (p : list step) (v : verdict) : answer :=
  match p with
  | [] => if same_layout L target then Accept v else Reject wrong_end
  | (k, L') :: r =>
      if type_step L k L' then
        if within bound (tile_elements L')
        then walk bound target (S n) L' r
               (Verdict (Nat.max (peak v) (tile_elements L')) (received_total v + certified k L L'))
        else Reject (over_bound n)
      else Reject (not_typed n)
  end.

Definition check_plan (p : plan) (bound : option nat) : answer :=
  if negb (layout_ok (source p)) then Reject bad_source
  else if negb (layout_ok (target p)) then Reject bad_target
  else if negb (same_array (source p) (target p)) then Reject other_array
  else if negb (within bound (tile_elements (source p))) then Reject (over_bound 0)
  else walk bound (target p) 1 (source p) (steps p) (Verdict (tile_elements (source p)) 0).

(* the effect of a plan *)
Fixpoint run {V} (M : monoid V) (L : layout) (p : list step) (S : state V) : state V :=
  match p with [] => S | (k, L') :: r => run M L' r (exec M k L L' S) end.
Definition layouts (p : plan) : list layout := source p :: map snd (steps p).
(* xs names a device of the mesh after each step: the same one throughout when there is one mesh *)
Fixpoint received_plan (L : layout) (p : list step) (xs : list dev) : nat :=
  match p, xs with
  | (k, L') :: r, x :: xs => received k L L' x + received_plan L' r xs
  | _, _ => 0
  end.
Definition on_path (p : list step) (xs : list dev) : Prop :=
  Forall2 (fun s x => valid (mesh_of (snd s)) x) p xs.

Lemma same_layout_ok L L' : same_layout L L' = true -> L = L'.
Proof.
  unfold same_layout. rewrite !andb_true_iff, same_mesh_ok, same_unreduced_ok. intros [[E1 E2] E3].
  destruct L as [m t U], L' as [m' t' U']; simpl in *. subst. f_equal.
  revert t' E3; induction t as [|d t IH]; destruct t' as [|e t']; simpl; intros H; auto; try discriminate.
  apply andb_true_iff in H as [H1 H2]. f_equal; auto.
  unfold dim_eqb, same_atoms in H1. rewrite andb_true_iff, Nat.eqb_eq, same_list_ok in H1.
  destruct d, e; simpl in *. f_equal; tauto.
Qed.
Lemma same_layout_refl L : same_layout L L = true.
Proof.
  unfold same_layout. rewrite !andb_true_iff, same_mesh_ok, same_unreduced_ok. split; auto.
  induction (dims L); simpl; auto. rewrite IHl, andb_true_r. unfold dim_eqb, same_atoms.
  rewrite Nat.eqb_refl. apply same_list_ok; auto.
Qed.

Lemma walk_sound bound tgt n L p v w : layout_ok L = true -> walk bound tgt n L p v = Accept w ->
  layout_ok tgt = true /\ peak v <= peak w /\ (within bound (peak v) = true -> within bound (peak w) = true) /\
  (forall L', In L' (map snd p) -> tile_elements L' <= peak w) /\
  (forall V (M : monoid V) G S, represents M L G S -> represents M tgt G (run M L p S)) /\
  (forall xs, on_path p xs -> received_total v + received_plan L p xs <= received_total w).
Proof.
  revert n L v; induction p as [|[k L1] p IH]; simpl; intros n L v OK H.
  - destruct (same_layout L tgt) eqn:E; [|discriminate]. apply same_layout_ok in E. inversion H; subst.
    split; [auto|]. split; [lia|]. split; [auto|]. split; [intros L' []|]. split; [auto|].
    intros xs _. destruct xs; lia.
  - destruct (type_step L k L1) eqn:T; [|discriminate].
    destruct (within bound (tile_elements L1)) eqn:B; [|discriminate].
    pose proof (type_step_inv _ _ _ T) as [OK1 _].
    destruct (IH _ _ _ OK1 H) as [H1 [H2 [H3 [H4 [H5 H6]]]]]. simpl in *.
    split; auto. split; [lia|]. split; [|split; [|split]].
    + intros Bv. apply H3. destruct bound as [b|]; simpl in *; auto.
      apply Nat.leb_le in B, Bv. apply Nat.leb_le. lia.
    + intros L' [<-|I]; auto. lia.
    + intros V M G S R. apply H5. apply step_sound; auto.
    + intros xs P. inversion P as [|s x p' xs' Hx P']; subst. simpl in Hx.
      specialize (H6 xs' P'). pose proof (received_certified L k L1 x OK T Hx). lia.
Qed.

(* An accepted plan delivers the same array in the target layout; no device ever holds more elements than the peak,
   which is within the bound; and no device receives more than the certified number. *)
Theorem check_plan_sound p bound v : check_plan p bound = Accept v ->
  (forall V (M : monoid V) (G : idx -> V) S,
     represents M (source p) G S -> represents M (target p) G (run M (source p) (steps p) S)) /\
  (forall L x, In L (layouts p) -> length (tile (mesh_of L) (dims L) x) <= peak v) /\
  (forall b, bound = Some b -> peak v <= b) /\
  (forall xs, on_path (steps p) xs -> received_plan (source p) (steps p) xs <= received_total v).
Proof.
  unfold check_plan. intros H.
  destruct (layout_ok (source p)) eqn:O1; [|discriminate]. destruct (layout_ok (target p)); [|discriminate].
  destruct (same_array (source p) (target p)); [|discriminate].
  destruct (within bound (tile_elements (source p))) eqn:B; [|discriminate]. simpl in H.
  destruct (walk_sound _ _ _ _ _ _ _ O1 H) as [H1 [H2 [H3 [H4 [H5 H6]]]]]. simpl in *.
  split; auto. split; [|split; auto].
  - intros L x [<-|I]; (etransitivity; [apply tile_length_le|]); [exact H2|apply H4; auto].
  - intros b ->. specialize (H3 B). simpl in H3. apply Nat.leb_le; auto.
Qed.

(* On one mesh: the device is the same after every step. *)
Corollary check_plan_received p bound v x : check_plan p bound = Accept v ->
  (forall L, In L (layouts p) -> mesh_of L = mesh_of (source p)) -> valid (mesh_of (source p)) x ->
  received_plan (source p) (steps p) (map (fun _ => x) (steps p)) <= received_total v.
Proof.
  intros H E Hx. destruct (check_plan_sound _ _ _ H) as [_ [_ [_ R]]]. apply R.
  assert (F : forall s, In s (steps p) -> mesh_of (snd s) = mesh_of (source p)).
  { intros s I. apply E. right. apply in_map; auto. }
  clear R E. unfold on_path. induction (steps p) as [|s r IH]; simpl; constructor.
  - rewrite F; simpl; auto.
  - apply IH. intros; apply F; simpl; auto.
Qed.

(* A single exchange is accepted wherever the summands agree in number: every pair of layouts has a plan. *)
Theorem exchange_accepted L L' : layout_ok L = true -> layout_ok L' = true -> same_array L L' = true ->
  summand_count L = summand_count L' -> changes L L' = true ->
  exists v, check_plan (Plan L L' [(exchange, L')]) (Some (Nat.max (tile_elements L) (tile_elements L'))) = Accept v.
Proof.
  intros O1 O2 SA SU CH. unfold check_plan. simpl. rewrite O1, O2, SA. simpl.
  rewrite (proj2 (Nat.leb_le _ _)) by lia. simpl. unfold type_step. rewrite O2, SA, CH. simpl.
  rewrite SU, Nat.eqb_refl. rewrite (proj2 (Nat.leb_le _ _)) by lia. rewrite same_layout_refl. eauto.
Qed.
