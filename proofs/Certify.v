(* What the driver may print beside an accepted plan: the lower bound that no protocol beats.
   lower_bound L L'       missing_elements, or the bound for sums; none where the target has summands (any split that
     adds up will do) and
                          none across meshes
   lower_bound_sound      some device receives at least that much, in any protocol
   reduce_bound_sound     the same where the source has summands and the target has none
   certified_optimal      a plan whose certified number is the lower bound cannot be beaten on the busiest receiver *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check Protocol Bound ClosedForm Schedule Reduce.

Definition move_bound (L L' : layout) : option nat :=
  if layout_ok L && layout_ok L' && same_array L L' && same_mesh L L' && (summand_count L =? 1) && (summand_count L'
    =? 1) then
    if forallb (fun s => 2 <=? s) (mesh_of L) then Some (missing_elements L L') else None
  else None.

(* c summands of every element are wanted, added up, on r devices; and whole tiles of sums must come in *)
Definition reduce_bound (L L' : layout) : option nat :=
  if layout_ok L && layout_ok L' && same_array L L' && same_mesh L L' && (2 <=? summand_count L) && (summand_count L'
    =? 1) then
    let m := mesh_of L in
    let r := prodsz m (rest m (dims L')) in
    let n := fold_right Nat.mul 1 (map extent (dims L')) in
    Some (Nat.max (tile_elements L') (ceil_div (n * (summand_count L + r - 2)) (fold_right Nat.mul 1 m)))
  else None.

Definition lower_bound (L L' : layout) : option nat :=
  match move_bound L L' with Some n => Some n | None => reduce_bound L L' end.

Lemma move_bound_exchange L L' n : move_bound L L' = Some n ->
  exists x, valid (mesh_of L) x /\ n <= received exchange L L' x.
Proof.
  unfold move_bound. intros H.
  destruct (layout_ok L) eqn:OK; [|discriminate]. destruct (layout_ok L') eqn:OK'; [|discriminate].
  destruct (same_array L L') eqn:SH; [|discriminate]. destruct (same_mesh L L') eqn:EM; [|discriminate].
  destruct (summand_count L =? 1) eqn:S1; [|discriminate]. destruct (summand_count L' =? 1) eqn:S2; [|discriminate].
  cbn [andb] in H. apply same_array_ok in SH. apply Nat.eqb_eq in S1, S2.
  assert (SU : summand_count L = summand_count L') by congruence.
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  pose proof OK' as OKi. apply layout_ok_iff in OKi as [_ W']. pose proof EM as E. apply same_mesh_ok in E.
  pose proof (zero_valid _ Hm) as Z.
  destruct (forallb (fun s => 2 <=? s) (mesh_of L)) eqn:B; [|discriminate]. injection H as <-.
  assert (P2 : forall a, a < length (mesh_of L) -> 2 <= sz (mesh_of L) a).
  { rewrite forallb_forall in B. intros a Ha. apply Nat.leb_le, B. apply nth_In; auto. }
  unfold missing_elements. destruct (comparable L L') eqn:C.
  - exists (zero_dev (mesh_of L)). split; auto. rewrite lower_bound_tiles; auto.
  - rewrite EM. cbn [negb]. destruct (even_layout L && even_layout L') eqn:EV; cbn [orb].
    + apply andb_true_iff in EV as [E1 E2].
      pose proof (even_layout_ok L E1) as D. pose proof (even_layout_ok L' E2) as D'. rewrite <- E in D'.
      assert (U0 : forall U, prodsz (mesh_of L) U = 1 -> (forall a, In a U -> a < length (mesh_of L)) -> U = []).
      { intros U HU HR. destruct U as [|u U]; auto. exfalso.
        assert (2 <= prodsz (mesh_of L) (u :: U)); [|lia]. apply prodsz_ge2; [|congruence]. intros; apply P2, HR;
          auto. }
      destruct (comparable_dec (mesh_of L) (dims L) (dims L') Hm SH D D')
        as [K|[i [P [a [A [b [B' [Hi [H1 [H2 H3]]]]]]]]]].
      * exfalso. unfold comparable in C. rewrite EM, K in C.
        rewrite (proj2 (same_unreduced_ok L L')) in C; [discriminate|].
        unfold summand_count in S1, S2. rewrite <- E in S2. destruct (wf_unreduced _ W) as [_ [R1 _]].
        destruct (wf_unreduced _ W') as [_ [R2 _]]. rewrite <- E in R2. rewrite (U0 _ S1 R1), (U0 _ S2 R2). reflexivity.
      * assert (Ia : a < length (mesh_of L)).
        { apply (wf_tail _ _ _ W). apply (in_used _ i). rewrite H1, in_app_iff; simpl; auto. }
        assert (Ib : b < length (mesh_of L)).
        { rewrite E. apply (wf_tail _ _ _ W'). apply (in_used _ i). rewrite H2, in_app_iff; simpl; auto. }
        pose proof (same_shape_length _ _ SH) as HL.
        destruct (lower_bound_incomparable L L' (S i) P a A b B' OK OK' SH EM SU) as [x [Hx R]]; auto; try (simpl; lia).
        { apply D. change (In (dim_at (dims L) i) (dims L)). apply nth_In; auto. }
        { apply D'. change (In (dim_at (dims L') i) (dims L')). apply nth_In; lia. }
        exists x. split; auto. lia.
    + destruct (max_attained (foreign_at L L') (devices (mesh_of L'))) as [x [I F]].
      { rewrite <- E. apply device_valid in Z. intros X. rewrite X in Z. destruct Z. }
      apply device_valid in I. rewrite <- E in I. exists x. split; auto. rewrite exchange_exact; auto. lia.
Qed.

(* Some device receives at least the lower bound, in any protocol that ends with the target distribution. *)
Theorem move_bound_sound L L' n ts H' : move_bound L L' = Some n ->
  protocol dev idx (has L) ts H' -> (forall y e, has L' y e -> H' y e) ->
  exists x, valid (mesh_of L) x /\ n <= recv dev idx dev_eq x ts.
Proof.
  intros H P HT. destruct (move_bound_exchange L L' n H) as [x [Hx R]]. exists x. split; auto.
  unfold move_bound in H.
  destruct (layout_ok L) eqn:OK; [|discriminate]. destruct (layout_ok L') eqn:OK'; [|discriminate].
  destruct (same_array L L') eqn:SH; [|discriminate]. destruct (same_mesh L L') eqn:EM; [|discriminate].
  destruct (summand_count L =? 1) eqn:S1; [|discriminate]. destruct (summand_count L' =? 1) eqn:S2; [|discriminate].
  apply same_array_ok in SH. apply Nat.eqb_eq in S1, S2.
  assert (SU : summand_count L = summand_count L') by congruence. pose proof EM as E. apply same_mesh_ok in E.
  etransitivity; [exact R|]. eapply exchange_optimal; eauto. rewrite <- E; auto.
Qed.

(* the summands of element g that a device knows before: its own summand, if g is in its tile *)
Definition start (L : layout) (g : idx) : knowledge dev := fun x =>
  if same_list (quot (mesh_of L) (dims L) g) (shard_of (mesh_of L) (dims L) x) then [ev (mesh_of L) (unreduced L) x]
    else [].
Definition idx_eq : forall g h : idx, {g = h} + {g <> h} := list_eq_dec Nat.eq_dec.
(* After the transfers ts every holder of an element in L' has been reached by all summands of that element. *)
Definition adds_up (L L' : layout) (ts : list (Protocol.transfer dev idx)) : Prop :=
  forall x g, valid (mesh_of L) x -> holds (mesh_of L) (dims L') x g ->
    complete (summand_count L) (learn dev idx dev_eq idx_eq g (start L g) ts x) = true.

Lemma ceil_div_bound a n b : 0 < n -> a <= n * b -> ceil_div a n <= b.
Proof.
  intros Hn H. unfold ceil_div.
  assert ((a + n - 1) / n < S b); [|lia]. apply Nat.div_lt_upper_bound; nia.
Qed.

Lemma holders m t g : mesh_ok m = true -> wf m t -> in_shape t g ->
  exists ws, NoDup ws /\ length ws = prodsz m (rest m t) /\ forall x, In x ws -> valid m x /\ holds m t x g.
Proof.
  intros Hm W Hs. pose proof (zero_valid m Hm) as Z.
  destruct (setdims_holds m t (zero_dev m) g Hm W Z Hs) as [Vy Hy]. set (y := setdims m t (quot m t g) (zero_dev m))
    in *.
  exists (map (fun v => setd m (rest m t) v y) (seq 0 (prodsz m (rest m t)))). split; [|split].
  - assert (G : forall s, NoDup s -> (forall v, In v s -> v < prodsz m (rest m t)) ->
              NoDup (map (fun v => setd m (rest m t) v y) s)).
    { induction 1 as [|v s N ND IH]; simpl; intros B; constructor.
      - intros I. apply in_map_iff in I as [w [E I]]. apply N.
        assert (EV : forall u, u < prodsz m (rest m t) -> ev m (rest m t) (setd m (rest m t) u y) = u).
        { intros u Hu. apply ev_setd; auto using nodup_rest. intros a Ha. apply in_rest in Ha. rewrite (proj1 Vy).
          tauto. }
        rewrite <- (EV v), <- E, EV; auto; apply B; simpl; auto.
      - apply IH. intros w Hw. apply B; simpl; auto. }
    apply G; [apply seq_NoDup|]. intros v Hv. apply in_seq in Hv. lia.
  - rewrite map_length, seq_length. auto.
  - intros x Hx. apply in_map_iff in Hx as [v [<- Hv]]. apply in_seq in Hv. split. { apply setd_valid; auto. lia. }
    destruct Hy as [H1 H2]. split; auto. rewrite shard_of_setd; auto.
    intros a Ha. apply in_rest in Ha. tauto.
Qed.

(* Some device receives at least the bound, whatever the messages hold, if all summands reach all who want the sum. *)
Theorem reduce_bound_sound L L' n ts : reduce_bound L L' = Some n ->
  (forall t, In t ts -> valid (mesh_of L) (to dev idx t)) -> adds_up L L' ts ->
  exists x, valid (mesh_of L) x /\ n <= recv dev idx dev_eq x ts.
Proof.
  unfold reduce_bound. intros H HT HA.
  destruct (layout_ok L) eqn:OK; [|discriminate]. destruct (layout_ok L') eqn:OK'; [|discriminate].
  destruct (same_array L L') eqn:SH; [|discriminate]. destruct (same_mesh L L') eqn:EM; [|discriminate].
  destruct (2 <=? summand_count L) eqn:C2; [|discriminate]. destruct (summand_count L' =? 1) eqn:S2; [|discriminate].
  cbn [andb] in H. apply Nat.leb_le in C2. apply same_mesh_ok in EM. apply same_array_ok in SH.
  apply layout_ok_iff in OK as [Hm W]. apply layout_ok_iff in OK' as [_ W']. rewrite <- EM in W'.
  set (m := mesh_of L) in *. set (c := summand_count L) in *. set (r := prodsz m (rest m (dims L'))) in *.
  assert (A1 : forall g, at_most_one dev (start L g)).
  { intros g x. unfold start. destruct (same_list _ _); simpl; lia. }
  pose proof (zero_valid m Hm) as Z.
  assert (B1 : exists x, valid m x /\ tile_elements L' <= recv dev idx dev_eq x ts).
  { exists (zero_dev m). split; auto. unfold tile_elements. rewrite <- EM. fold m.
    rewrite <- (tile_full m (dims L') (zero_dev m) Z) by (intros; left; apply ev_zero).
    rewrite <- (map_length (gidx m (dims L') (zero_dev m))).
    apply (whole_tile dev idx dev_eq idx_eq c _ ts (start L)); auto.
    - assert (FT : forall l, In l (tile m (dims L') (zero_dev m)) -> length l = length (dims L')).
      { intros l Hl. apply in_tile_list in Hl. apply Hl. }
      pose proof (nodup_tile m (dims L') (zero_dev m)) as ND. revert FT.
      induction ND as [|l ls N ND IH]; simpl; intros FT; constructor; auto.
      intros I. apply in_map_iff in I as [l' [E I]]. apply N. apply gidx_inj in E; [subst; auto| |]; apply FT; auto.
    - intros g Hg. apply in_map_iff in Hg as [l [<- Hl]]. apply in_tile_list in Hl.
      apply HA; auto. apply tile_holds; auto. }
  assert (B2 : exists x, valid m x /\ fold_right Nat.mul 1 (map extent (dims L')) * (c + r - 2) <=
               fold_right Nat.mul 1 m * recv dev idx dev_eq x ts).
  { rewrite <- !box_length.
    destruct (reduce_lower_bound dev idx dev_eq idx_eq c r (devices m) (box (map extent (dims L'))) ts (start L))
      as [x [I B]]; auto using nodup_box.
    - apply mesh_ok_prodsz; auto.
    - intros t Ht. apply device_valid, HT; auto.
    - intros g Hg. apply in_box in Hg as [G1 G2]. rewrite map_length in G1, G2.
      assert (Hs : in_shape (dims L') g).
      { split; auto. intros i Hi. specialize (G2 i Hi). unfold dim_at.
        rewrite (nth_indep (map extent (dims L')) 0 (extent d0)) in G2 by (rewrite map_length; auto).
        rewrite map_nth in G2. auto. }
      destruct (holders m (dims L') g Hm (wf_tail _ _ _ W') Hs) as [ws [N1 [L1 V1]]].
      exists ws. split; auto. split; auto. intros x Hx. destruct (V1 x Hx) as [Vx Hh]. apply HA; auto.
    - intros E. apply device_valid in Z. rewrite E in Z. destruct Z.
    - exists x. split; [apply device_valid; auto|exact B]. }
  injection H as <-.
  assert (NP : 0 < fold_right Nat.mul 1 m).
  { rewrite <- box_length. change (box m) with (devices m). apply device_valid in Z. destruct (devices m); [destruct
    Z|simpl; lia]. }
  destruct B1 as [x1 [V1 B1]], B2 as [x2 [V2 B2]]. apply ceil_div_bound in B2; auto.
  destruct (Nat.le_gt_cases (tile_elements L') (ceil_div (fold_right Nat.mul 1 (map extent (dims L')) * (c + r - 2))
    (fold_right Nat.mul 1 m))).
  - exists x2. split; auto. lia.
  - exists x1. split; auto. lia.
Qed.

(* If the certified number of an accepted plan is the lower bound, then every device of the plan receives no more than
   the busiest receiver of any protocol. *)
Theorem certified_optimal p bound v n ts H' : check_plan p bound = Accept v ->
  move_bound (source p) (target p) = Some n -> received_total v <= n ->
  protocol dev idx (has (source p)) ts H' -> (forall y e, has (target p) y e -> H' y e) ->
  exists x, valid (mesh_of (source p)) x /\
    forall xs, on_path (steps p) xs -> received_plan (source p) (steps p) xs <= recv dev idx dev_eq x ts.
Proof.
  intros C LB R P HT. destruct (move_bound_sound _ _ _ _ _ LB P HT) as [x [Hx B]].
  exists x. split; auto. intros xs Hxs.
  destruct (check_plan_sound _ _ _ C) as [_ [_ [_ H]]]. specialize (H xs Hxs). lia.
Qed.
(* ... and where sums are formed, of any exchange of messages that lets every summand reach all who want the sum. *)
Theorem certified_optimal_sum p bound v n ts : check_plan p bound = Accept v ->
  reduce_bound (source p) (target p) = Some n -> received_total v <= n ->
  (forall t, In t ts -> valid (mesh_of (source p)) (to dev idx t)) -> adds_up (source p) (target p) ts ->
  exists x, valid (mesh_of (source p)) x /\
    forall xs, on_path (steps p) xs -> received_plan (source p) (steps p) xs <= recv dev idx dev_eq x ts.
Proof.
  intros C LB R HT HA. destruct (reduce_bound_sound _ _ _ _ LB HT HA) as [x [Hx B]].
  exists x. split; auto. intros xs Hxs.
  destruct (check_plan_sound _ _ _ C) as [_ [_ [_ H]]]. specialize (H xs Hxs). lia.
Qed.
