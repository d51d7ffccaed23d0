(* Lower bounds between meshes, for any protocol among the devices of both.
   bound_between          what the driver prints beside a plan between meshes
   between_bound_sound    some device receives at least that much
   between_sum_sound      the same where the source has summands and the target has none
   certified_between, certified_between_sum   a plan at the bound cannot be beaten on the busiest receiver
   direct_exchange_between     one exchange is accepted, and without sums at the bound *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check Protocol Bound ClosedForm Schedule Reduce
  Certify Between.

Definition has_at (P : placed) (d : nat) (e : idx) : Prop := exists x, In (d, x) (stands P) /\ has (lay P) x e.

Definition move_between (P P' : placed) : option nat :=
  if placed_ok P && placed_ok P' && same_array (lay P) (lay P') && (summand_count (lay P) =? 1)
     && (summand_count (lay P') =? 1)
  then Some (foreign_between P P') else None.

(* the devices of both meshes *)
Definition everyone (P P' : placed) : list nat := numbers P ++ minus (numbers P') (numbers P).
(* c summands of every element are wanted, added up, on r devices; and whole tiles of sums must come in *)
Definition sum_between (P P' : placed) : option nat :=
  if placed_ok P && placed_ok P' && same_array (lay P) (lay P') && (2 <=? summand_count (lay P))
     && (summand_count (lay P') =? 1)
  then
    let r := prodsz (mesh_of (lay P')) (rest (mesh_of (lay P')) (dims (lay P'))) in
    let n := fold_right Nat.mul 1 (map extent (dims (lay P'))) in
    Some (Nat.max (tile_elements (lay P'))
                  (ceil_div (n * (summand_count (lay P) + r - 2)) (length (everyone P P'))))
  else None.
Definition bound_between (P P' : placed) : option nat :=
  match move_between P P' with Some n => Some n | None => sum_between P P' end.

Lemma missing_wanted P P' d x l : placed_ok P = true -> same_shape (dims (lay P)) (dims (lay P')) ->
  In l (missing P P' d x) -> ~ has_at P d (element (lay P') x l).
Proof.
  intros OK SH Hl [y [I Hy]]. apply filter_In in Hl as [Hl N]. apply negb_true_iff in N.
  pose proof OK as OKi. apply placed_ok_inv in OKi as [OKl _]. apply layout_ok_iff in OKl as [Hm _].
  apply holds_full in Hy as [_ [E Hh]]; auto.
  unfold here in N. rewrite (stands_place P d y OK I), E, Nat.eqb_refl in N. simpl in N.
  apply in_tile_list in Hl. rewrite <- not_true_iff_false in N. apply N, sat_held; auto. apply Hl.
Qed.

Lemma nodup_elements L x ls : NoDup ls -> (forall l, In l ls -> In l (tile (mesh_of L) (dims L) x)) ->
  NoDup (map (element L x) ls).
Proof.
  induction 1 as [|l ls N ND IH]; simpl; intros FT; constructor; auto.
  intros I. apply in_map_iff in I as [l' [E I]]. apply N.
  apply element_inj in E; [subst; auto| |]; apply in_tile_list, FT; auto.
Qed.

(* Devices of either mesh may take part, and what stands in one mesh only has no tile in the other. *)
Theorem between_bound_sound P P' n ts H' : move_between P P' = Some n ->
  protocol nat idx (has_at P) ts H' -> (forall d e, has_at P' d e -> H' d e) ->
  exists d, In d (numbers P') /\ n <= recv nat idx Nat.eq_dec d ts.
Proof.
  unfold move_between. intros H PR HT.
  destruct (placed_ok P) eqn:OK; [|discriminate]. destruct (placed_ok P') eqn:OK'; [|discriminate].
  destruct (same_array _ _) eqn:SA; [|discriminate]. destruct (summand_count (lay P) =? 1); [|discriminate].
  destruct (summand_count (lay P') =? 1); [|discriminate]. cbn [andb] in H. injection H as <-.
  apply same_array_ok in SA. pose proof OK' as OKi. apply placed_ok_inv in OKi as [OKl _].
  assert (NE : stands P' <> []).
  { pose proof OKl as OKi. apply layout_ok_iff in OKi as [Hm _]. pose proof (zero_valid _ Hm) as Z.
    apply (valid_stands P' _ OK') in Z. intros E. rewrite E in Z. destruct Z. }
  assert (MX : exists p, In p (stands P') /\ foreign_on (stands P) (lay P) (lay P') p = foreign_between P P').
  { unfold foreign_between. cbv zeta. clear - NE. induction (stands P') as [|y [|z l] IH]; [congruence| |].
    - exists y. simpl. split; [auto|lia].
    - destruct IH as [q [I E]]; [congruence|]. cbn [map fold_right] in *.
      destruct (Nat.le_gt_cases (foreign_on (stands P) (lay P) (lay P') q)
                                (foreign_on (stands P) (lay P) (lay P') y)).
      + exists y. split; [simpl; auto|]. lia.
      + exists q. split; [simpl in *; auto|]. lia. }
  destruct MX as [[d x] [I <-]]. exists d. split. { eapply in_combine_l; eauto. }
  rewrite <- missing_count, <- (map_length (element (lay P') x)) by auto.
  pose proof (stands_valid _ _ _ I) as Hx.
  eapply recv_lower_bound; eauto.
  - apply nodup_elements. { apply NoDup_filter, nodup_tile. } intros l Hl. apply filter_In in Hl. tauto.
  - intros e He. apply in_map_iff in He as [l [<- Hl]]. split; [|eapply missing_wanted; eauto].
    apply HT. exists x. split; auto. apply has_element; auto. exists l. split; auto.
    apply filter_In in Hl as [Hl _]. apply in_tile_list; auto.
Qed.

(* the summands of element g that a device knows before: its own summand, if it stands in the source and g is in its tile *)
Definition start_at (P : placed) (g : idx) : knowledge nat := fun d =>
  match place_of P d with Some x => start (lay P) g x | None => [] end.
(* After the transfers ts every holder of an element in the target has been reached by all its summands. *)
Definition adds_up_at (P P' : placed) (ts : list (Protocol.transfer nat idx)) : Prop :=
  forall d x g, In (d, x) (stands P') -> holds (mesh_of (lay P')) (dims (lay P')) x g ->
    complete (summand_count (lay P)) (learn nat idx Nat.eq_dec idx_eq g (start_at P g) ts d) = true.

Lemma nodup_numbers P xs : placed_ok P = true -> NoDup xs -> (forall x, In x xs -> valid (mesh_of (lay P)) x) ->
  NoDup (map (number_of P) xs).
Proof.
  intros OK ND V. induction ND as [|x xs N ND IH]; simpl; constructor.
  - intros I. apply in_map_iff in I as [y [E I]]. apply N.
    pose proof (valid_stands P x OK (V x (or_introl eq_refl))) as Sx.
    pose proof (valid_stands P y OK (V y (or_intror I))) as Sy. rewrite E in Sy.
    apply (stands_place P _ _ OK) in Sx, Sy. assert (x = y) by congruence. subst; auto.
  - apply IH. intros; apply V; simpl; auto.
Qed.

Theorem between_sum_sound P P' n ts : sum_between P P' = Some n ->
  (forall t, In t ts -> In (to nat idx t) (everyone P P')) -> adds_up_at P P' ts ->
  exists d, In d (everyone P P') /\ n <= recv nat idx Nat.eq_dec d ts.
Proof.
  unfold sum_between. intros H HT HA.
  destruct (placed_ok P) eqn:OK; [|discriminate]. destruct (placed_ok P') eqn:OK'; [|discriminate].
  destruct (same_array _ _); [|discriminate]. destruct (2 <=? summand_count (lay P)) eqn:C2; [|discriminate].
  destruct (summand_count (lay P') =? 1); [|discriminate]. cbn [andb] in H. injection H as <-. apply Nat.leb_le in C2.
  pose proof (placed_ok_inv _ OK) as [_ [_ ND]]. pose proof (placed_ok_inv _ OK') as [OKl [_ ND']].
  apply layout_ok_iff in OKl as [Hm' W'].
  set (m := mesh_of (lay P')) in *. set (c := summand_count (lay P)) in *. set (t := dims (lay P')) in *.
  set (r := prodsz m (rest m t)) in *. set (all := everyone P P') in *.
  assert (ALL : forall d, In d (numbers P') -> In d all).
  { intros d I. unfold all, everyone. rewrite in_app_iff, in_minus. destruct (in_dec Nat.eq_dec d (numbers P)); auto. }
  assert (NDA : NoDup all).
  { apply nodup_app_intro; auto using nodup_minus. intros a A B. apply in_minus in B. tauto. }
  assert (A1 : forall g, at_most_one nat (start_at P g)).
  { intros g d. unfold start_at. destruct (place_of P d); simpl; [|lia]. unfold start.
    destruct (same_list _ _); simpl; lia. }
  pose proof (zero_valid m Hm') as Z. pose proof (valid_stands P' _ OK' Z) as SZ. fold m in SZ.
  assert (B1 : exists d, In d all /\ tile_elements (lay P') <= recv nat idx Nat.eq_dec d ts).
  { exists (number_of P' (zero_dev m)). split. { apply ALL. eapply in_combine_l; exact SZ. }
    unfold tile_elements. fold m t.
    rewrite <- (tile_full m t (zero_dev m) Z) by (intros; left; apply ev_zero).
    rewrite <- (map_length (gidx m t (zero_dev m))).
    apply (whole_tile nat idx Nat.eq_dec idx_eq c _ ts (start_at P)); auto.
    - assert (FT : forall l, In l (tile m t (zero_dev m)) -> length l = length t).
      { intros l Hl. apply in_tile_list in Hl. apply Hl. }
      pose proof (nodup_tile m t (zero_dev m)) as NT. revert FT.
      induction NT as [|l ls N NT IH]; simpl; intros FT; constructor; auto.
      intros I. apply in_map_iff in I as [l' [E I]]. apply N. apply gidx_inj in E; [subst; auto| |]; apply FT; auto.
    - intros g Hg. apply in_map_iff in Hg as [l [<- Hl]]. apply in_tile_list in Hl.
      apply (HA _ (zero_dev m)); auto. apply tile_holds; auto. }
  assert (B2 : exists d, In d all /\ fold_right Nat.mul 1 (map extent t) * (c + r - 2) <=
               length all * recv nat idx Nat.eq_dec d ts).
  { rewrite <- box_length.
    destruct (reduce_lower_bound nat idx Nat.eq_dec idx_eq c r all (box (map extent t)) ts (start_at P))
      as [d [I B]]; auto using nodup_box.
    - apply mesh_ok_prodsz; auto.
    - intros g Hg. apply in_box in Hg as [G1 G2]. rewrite map_length in G1, G2.
      assert (Hs : in_shape t g).
      { split; auto. intros i Hi. specialize (G2 i Hi). unfold dim_at.
        rewrite (nth_indep (map extent t) 0 (extent d0)) in G2 by (rewrite map_length; auto).
        rewrite map_nth in G2. auto. }
      destruct (holders m t g Hm' (wf_tail _ _ _ W') Hs) as [ws [N1 [L1 V1]]].
      exists (map (number_of P') ws). rewrite map_length. split; [|split; auto].
      + apply nodup_numbers; auto. intros x Hx. apply V1; auto.
      + intros d I. apply in_map_iff in I as [x [<- I]]. destruct (V1 x I) as [Vx Hh].
        apply (HA _ x); auto. apply valid_stands; auto.
    - intros E. apply in_combine_l in SZ. apply ALL in SZ. rewrite E in SZ. destruct SZ.
    - exists d. split; auto. }
  destruct B1 as [d1 [V1 B1]], B2 as [d2 [V2 B2]].
  apply ceil_div_bound in B2; [|destruct all; [destruct V2|simpl; lia]].
  destruct (Nat.le_gt_cases (tile_elements (lay P'))
              (ceil_div (fold_right Nat.mul 1 (map extent t) * (c + r - 2)) (length all))).
  - exists d2. split; auto. lia.
  - exists d1. split; auto. lia.
Qed.

(* If the certified number of an accepted plan is the bound, then no device of the plan receives more than the busiest
   receiver of any protocol. *)
Theorem certified_between p bound v n ts H' : check_between p bound = Accept v ->
  move_between (begins_at p) (ends_at p) = Some n -> received_total v <= n ->
  protocol nat idx (has_at (begins_at p)) ts H' -> (forall d e, has_at (ends_at p) d e -> H' d e) ->
  exists d, forall d', received_way (begins_at p) (way p) d' <= recv nat idx Nat.eq_dec d ts.
Proof.
  intros C LB R PR HT. destruct (between_bound_sound _ _ _ _ _ LB PR HT) as [d [_ B]]. exists d. intros d'.
  destruct (check_between_sound _ _ _ C) as [_ [_ [_ H]]]. specialize (H d'). lia.
Qed.
Theorem certified_between_sum p bound v n ts : check_between p bound = Accept v ->
  sum_between (begins_at p) (ends_at p) = Some n -> received_total v <= n ->
  (forall t, In t ts -> In (to nat idx t) (everyone (begins_at p) (ends_at p))) ->
  adds_up_at (begins_at p) (ends_at p) ts ->
  exists d, forall d', received_way (begins_at p) (way p) d' <= recv nat idx Nat.eq_dec d ts.
Proof.
  intros C LB R HT HA. destruct (between_sum_sound _ _ _ _ LB HT HA) as [d [_ B]]. exists d. intros d'.
  destruct (check_between_sound _ _ _ C) as [_ [_ [_ H]]]. specialize (H d'). lia.
Qed.

(* The rule direct_exchange: between meshes one exchange is always accepted, within the memory of the ends, and without
   sums it is certified at the bound. *)
Theorem direct_exchange_between P P' : placed_ok P = true -> placed_ok P' = true ->
  same_array (lay P) (lay P') = true -> same_place P P' = false -> summand_count (lay P) = summand_count (lay P') ->
  check_between (Placed_plan P P' [(exchange, P')]) (Some (Nat.max (tile_elements (lay P)) (tile_elements (lay P')))) =
    Accept (Verdict (Nat.max (tile_elements (lay P)) (tile_elements (lay P'))) (foreign_between P P')) /\
  (summand_count (lay P) = 1 -> move_between P P' = Some (foreign_between P P')).
Proof.
  intros O1 O2 SA SP SU. split.
  - unfold check_between. cbn [begins_at ends_at way]. rewrite O1, O2, SA. cbn [negb within].
    rewrite (proj2 (Nat.leb_le _ _)) by lia. cbn [negb walk_placed]. unfold type_placed, certified_placed.
    rewrite SP, O2, SA. cbn [andb cross_rule within peak received_total]. rewrite SU, Nat.eqb_refl.
    rewrite (proj2 (Nat.leb_le _ _)) by lia.
    assert (SS : same_place P' P' = true).
    { unfold same_place. apply andb_true_iff. split; [apply same_mesh_ok|apply same_list_ok]; auto. }
    rewrite SS, same_layout_refl. reflexivity.
  - intros S1. unfold move_between. rewrite O1, O2, SA, <- SU, S1. reflexivity.
Qed.
