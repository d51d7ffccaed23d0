(* Steps and their typing rules.  A step is the pair (kind, layout after); everything else is derived.
   splits m d e           e is d with a suffix appended, and the boundaries of the tiles nest
   type_step before k after   the typing rule of every kind *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout.

Inductive kind :=
| slice | all_gather | all_to_all | permute | reduce_scatter | all_reduce | zero_fill | exchange.
Definition step : Type := kind * layout.

(* The rest of l after the prefix p. *)
Fixpoint after_prefix (l p : list nat) {struct p} : option (list nat) :=
  match p, l with
  | [], _ => Some l
  | a :: p, b :: l => if a =? b then after_prefix l p else None
  | _, [] => None
  end.

Definition same_list (l l' : list nat) : bool := if list_eq_dec Nat.eq_dec l l' then true else false.
Definition subset (l l' : list nat) : bool := forallb (fun a => existsb (Nat.eqb a) l') l.
Definition same_set (l l' : list nat) : bool := subset l l' && subset l' l.
Definition minus (l l' : list nat) : list nat := filter (fun a => negb (existsb (Nat.eqb a) l')) l.

Fixpoint nodupb (l : list nat) : bool :=
  match l with [] => true | a :: r => negb (existsb (Nat.eqb a) r) && nodupb r end.
Definition wfb (m : mesh) (t : list dim) : bool :=
  nodupb (used t) && forallb (fun a => a <? length m) (used t).
Definition layout_ok (L : layout) : bool := mesh_ok (mesh_of L) && wfb (mesh_of L) (full L).

Fixpoint forall2b {A} (f : A -> A -> bool) (l l' : list A) : bool :=
  match l, l' with
  | [], [] => true
  | a :: l, b :: l' => f a b && forall2b f l l'
  | _, _ => false
  end.

(* Every tile of e lies within one tile of d: exactly as many of them make one up as the appended atoms count, or the
   first tile of d is the whole dimension. *)
Definition splits (m : mesh) (d e : dim) : bool :=
  match after_prefix (atoms e) (atoms d) with
  | Some B => tile_extent m d =? Nat.min (extent e) (tile_extent m e * prodsz m B)
  | None => false
  end.
Definition joins (m : mesh) (d e : dim) : bool := splits m e d.
Definition nests (m : mesh) (d e : dim) : bool := splits m d e || joins m d e.
Definition same_shards (m : mesh) (d e : dim) : bool := shard_count m d =? shard_count m e.
Definition same_atoms (d e : dim) : bool := same_list (atoms d) (atoms e).

Definition same_array (L L' : layout) : bool := same_list (map extent (dims L)) (map extent (dims L')).
Definition same_mesh (L L' : layout) : bool := same_list (mesh_of L) (mesh_of L').
Definition same_unreduced (L L' : layout) : bool := same_list (unreduced L) (unreduced L').

(* The rule proper; type_step adds what all kinds need. *)
Definition rule (L : layout) (k : kind) (L' : layout) : bool :=
  let m := mesh_of L in
  match k with
  | slice => same_mesh L L' && same_unreduced L L' && forall2b (splits m) (dims L) (dims L')
  | all_gather => same_mesh L L' && same_unreduced L L' && forall2b (joins m) (dims L) (dims L')
  | all_to_all => same_mesh L L' && same_unreduced L L' && forall2b (nests m) (dims L) (dims L')
                  && same_set (used (dims L)) (used (dims L'))
  | permute => same_mesh L L' && forall2b (same_shards m) (full L) (full L')
  | reduce_scatter => same_mesh L L' && subset (unreduced L') (unreduced L)
                      && forall2b (splits m) (dims L) (dims L')
                      && same_set (minus (used (dims L')) (used (dims L))) (minus (unreduced L) (unreduced L'))
  | all_reduce => same_mesh L L' && subset (unreduced L') (unreduced L) && forall2b same_atoms (dims L) (dims L')
  | zero_fill => same_mesh L L' && subset (unreduced L) (unreduced L')
                 && forall2b (joins m) (dims L) (dims L')
                 && subset (minus (used (dims L)) (used (dims L'))) (unreduced L')
  | exchange => summand_count L =? summand_count L'
  end.

(* A step that changes nothing is no step. *)
Definition changes (L L' : layout) : bool :=
  negb (same_mesh L L' && same_unreduced L L' && forall2b same_atoms (dims L) (dims L')).

Definition type_step (L : layout) (k : kind) (L' : layout) : bool :=
  layout_ok L' && same_array L L' && changes L L' && rule L k L'.

(* The boolean tests mean what they say. *)
Lemma same_list_ok l l' : same_list l l' = true <-> l = l'.
Proof. unfold same_list. destruct (list_eq_dec Nat.eq_dec l l'); split; auto; discriminate. Qed.
Lemma subset_ok l l' : subset l l' = true <-> forall a, In a l -> In a l'.
Proof.
  unfold subset. rewrite forallb_forall. split; intros H a I.
  - apply existsb_In, H; auto.
  - apply existsb_In; auto.
Qed.
Lemma in_minus l l' a : In a (minus l l') <-> In a l /\ ~ In a l'.
Proof.
  unfold minus. rewrite filter_In, negb_true_iff, <- not_true_iff_false, existsb_In. tauto.
Qed.
Lemma nodupb_ok l : nodupb l = true <-> NoDup l.
Proof.
  induction l; simpl. { split; auto using NoDup_nil. }
  rewrite andb_true_iff, negb_true_iff, <- not_true_iff_false, existsb_In, IHl.
  split; [intros [? ?]; constructor; auto | intros H; inversion H; auto].
Qed.
Lemma wfb_ok m t : wfb m t = true <-> wf m t.
Proof.
  unfold wfb, wf. rewrite andb_true_iff, nodupb_ok, forallb_forall.
  split; intros [H1 H2]; split; auto; intros a Ha; apply H2 in Ha; apply Nat.ltb_lt; auto.
Qed.
Lemma layout_ok_iff L : layout_ok L = true <-> mesh_ok (mesh_of L) = true /\ wf (mesh_of L) (full L).
Proof. unfold layout_ok. rewrite andb_true_iff, wfb_ok. tauto. Qed.
Lemma forall2b_at f t t' : forall2b f t t' = true <->
  length t = length t' /\ forall i, i < length t -> f (dim_at t i) (dim_at t' i) = true.
Proof.
  unfold dim_at; revert t'; induction t; destruct t'; simpl;
    try (split; [discriminate || (intros; split; [auto|lia]) | intros [? ?]; auto; lia]).
  rewrite andb_true_iff, IHt. split.
  - intros [H1 [H2 H3]]; split; auto. intros [|i] Hi; auto. apply H3; lia.
  - intros [H1 H2]; split. { apply (H2 0); lia. } split; auto.
    intros i Hi; apply (H2 (S i)); lia.
Qed.
Lemma same_array_ok L L' : same_array L L' = true <-> same_shape (dims L) (dims L').
Proof. apply same_list_ok. Qed.
Lemma after_prefix_ok l p B : after_prefix l p = Some B <-> l = p ++ B.
Proof.
  revert l; induction p as [|a p IH]; simpl; intros l.
  - destruct l; simpl; split; congruence.
  - destruct l as [|b l]. { split; discriminate. }
    destruct (Nat.eqb_spec a b) as [->|N].
    + rewrite IH. split; [intros ->; auto | intros H; inversion H; auto].
    + split; [discriminate | intros H; inversion H; congruence].
Qed.
Lemma splits_ok m d e : splits m d e = true <->
  exists B, atoms e = atoms d ++ B /\ tile_extent m d = Nat.min (extent e) (tile_extent m e * prodsz m B).
Proof.
  unfold splits. destruct (after_prefix (atoms e) (atoms d)) as [B|] eqn:E.
  - apply after_prefix_ok in E. rewrite Nat.eqb_eq. split.
    + intros H; exists B; auto.
    + intros [C [H1 H2]]. rewrite E in H1. apply app_inv_head in H1. subst; auto.
  - split; [discriminate|]. intros [B [H _]]. apply after_prefix_ok in H. congruence.
Qed.

Lemma nodup_minus l l' : NoDup l -> NoDup (minus l l').
Proof. apply NoDup_filter. Qed.

(* A typed step keeps the array and ends in a good layout. *)
Lemma type_step_inv L k L' : type_step L k L' = true ->
  layout_ok L' = true /\ same_shape (dims L) (dims L') /\ rule L k L' = true.
Proof. unfold type_step. rewrite !andb_true_iff, same_array_ok. tauto. Qed.
