(* What the driver may print beside an accepted plan: the lower bound that no protocol beats.
   lower_bound L L'       in closed form; none with unreduced sums (there holders may add up before they send, so
                          elements of one summand are not what must travel) and none across meshes
   lower_bound_sound      some device receives at least that much, in any protocol
   certified_optimal      a plan whose certified number is the lower bound cannot be beaten on the busiest receiver *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check Protocol Bound ClosedForm.

Definition dividesb (m : mesh) (d : dim) : bool := extent d =? tile_extent m d * shard_count m d.
Definition is_prefix (p l : list nat) : bool := match after_prefix l p with Some _ => true | None => false end.
(* two axis lists of a dimension part ways, and sizes divide there *)
Definition parts (m : mesh) (d e : dim) : bool :=
  negb (is_prefix (atoms d) (atoms e)) && negb (is_prefix (atoms e) (atoms d)) && dividesb m d && dividesb m e.
Fixpoint exists2b {A} (f : A -> A -> bool) (l l' : list A) : bool :=
  match l, l' with a :: l, b :: l' => f a b || exists2b f l l' | _, _ => false end.

Definition lower_bound (L L' : layout) : option nat :=
  if layout_ok L && layout_ok L' && same_array L L' && same_mesh L L' && (summand_count L =? 1) && (summand_count L' =? 1) then
    if forallb (fun s => 2 <=? s) (mesh_of L) && exists2b (parts (mesh_of L)) (full L) (full L')
    then Some (tile_elements L')
    else Some (tile_elements L' - overlap L L')
  else None.

Lemma exists2b_at f t t' : exists2b f t t' = true -> exists i, i < length t /\ f (dim_at t i) (dim_at t' i) = true.
Proof.
  unfold dim_at. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; simpl; intros H; try discriminate.
  apply orb_true_iff in H as [H|H]. { exists 0. split; [lia|auto]. }
  destruct (IH t' H) as [i [Hi E]]. exists (S i). split; [lia|auto].
Qed.

Lemma lower_bound_exchange L L' n : lower_bound L L' = Some n ->
  exists x, valid (mesh_of L) x /\ n <= received exchange L L' x.
Proof.
  unfold lower_bound. intros H.
  destruct (layout_ok L) eqn:OK; [|discriminate]. destruct (layout_ok L') eqn:OK'; [|discriminate].
  destruct (same_array L L') eqn:SH; [|discriminate]. destruct (same_mesh L L') eqn:EM; [|discriminate].
  destruct (summand_count L =? 1) eqn:S1; [|discriminate]. destruct (summand_count L' =? 1) eqn:S2; [|discriminate].
  cbn [andb] in H. apply same_array_ok in SH. apply Nat.eqb_eq in S1, S2.
  assert (SU : summand_count L = summand_count L') by congruence.
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  pose proof OK' as OKi. apply layout_ok_iff in OKi as [_ W']. pose proof EM as E. apply same_mesh_ok in E.
  destruct (forallb (fun s => 2 <=? s) (mesh_of L) && exists2b (parts (mesh_of L)) (full L) (full L')) eqn:B.
  - injection H as <-. apply andb_true_iff in B as [B1 B2]. apply exists2b_at in B2 as [i [Hi B2]].
    assert (P2 : forall a, a < length (mesh_of L) -> 2 <= sz (mesh_of L) a).
    { rewrite forallb_forall in B1. intros a Ha. apply Nat.leb_le, B1. apply nth_In; auto. }
    unfold parts, is_prefix, dividesb in B2. rewrite !andb_true_iff, !Nat.eqb_eq in B2.
    destruct B2 as [[[B2 B3] D] D'].
    destruct (prefix_dec (atoms (dim_at (full L) i)) (atoms (dim_at (full L') i)))
      as [[A EA]|[[A EA]|[P [a [A [b [B [H1 [H2 H3]]]]]]]]].
    + apply after_prefix_ok in EA. rewrite EA in B2. discriminate.
    + apply after_prefix_ok in EA. rewrite EA in B3. discriminate.
    + assert (Ia : a < length (mesh_of L)). { apply W. apply (in_used _ i). rewrite H1, in_app_iff; simpl; auto. }
      assert (Ib : b < length (mesh_of L)).
      { rewrite E. apply W'. apply (in_used _ i). rewrite H2, in_app_iff; simpl; auto. }
      destruct (lower_bound_incomparable L L' i P a A b B OK OK' SH EM SU Hi H1 H2 H3 (P2 a Ia) (P2 b Ib) D D')
        as [x [Hx R]].
      exists x. split; auto. lia.
  - injection H as <-. exists (zero_dev (mesh_of L)). split. { apply zero_valid; auto. }
    rewrite lower_bound_tiles; auto.
Qed.

(* Some device receives at least the lower bound, in any protocol that ends with the target distribution. *)
Theorem lower_bound_sound L L' n ts H' : lower_bound L L' = Some n ->
  protocol dev idx (has L) ts H' -> (forall y e, has L' y e -> H' y e) ->
  exists x, valid (mesh_of L) x /\ n <= recv dev idx dev_eq x ts.
Proof.
  intros H P HT. destruct (lower_bound_exchange L L' n H) as [x [Hx R]]. exists x. split; auto.
  unfold lower_bound in H.
  destruct (layout_ok L) eqn:OK; [|discriminate]. destruct (layout_ok L') eqn:OK'; [|discriminate].
  destruct (same_array L L') eqn:SH; [|discriminate]. destruct (same_mesh L L') eqn:EM; [|discriminate].
  destruct (summand_count L =? 1) eqn:S1; [|discriminate]. destruct (summand_count L' =? 1) eqn:S2; [|discriminate].
  apply same_array_ok in SH. apply Nat.eqb_eq in S1, S2.
  assert (SU : summand_count L = summand_count L') by congruence. pose proof EM as E. apply same_mesh_ok in E.
  etransitivity; [exact R|]. eapply exchange_optimal; eauto. rewrite <- E; auto.
Qed.

(* If the certified number of an accepted plan is the lower bound, then every device of the plan receives no more than
   the busiest receiver of any protocol. *)
Theorem certified_optimal p bound v n ts H' : check_plan p bound = Accept v ->
  lower_bound (source p) (target p) = Some n -> received_total v <= n ->
  protocol dev idx (has (source p)) ts H' -> (forall y e, has (target p) y e -> H' y e) ->
  exists x, valid (mesh_of (source p)) x /\
    forall xs, on_path (steps p) xs -> received_plan (source p) (steps p) xs <= recv dev idx dev_eq x ts.
Proof.
  intros C LB R P HT. destruct (lower_bound_sound _ _ _ _ _ LB P HT) as [x [Hx B]].
  exists x. split; auto. intros xs Hxs.
  destruct (check_plan_sound _ _ _ C) as [_ [_ [_ H]]]. specialize (H xs Hxs). lia.
Qed.
