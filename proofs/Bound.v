(* The lower bound for layouts, and who meets it.
   has L x e             device x holds element e = summand :: index of the array
   exchange_optimal      on every device at once no protocol receives less than an exchange
   plan_lower_bound      ... and no accepted plan of movements does *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check Protocol.

Definition has (L : layout) (x : dev) (e : idx) : Prop := holds (mesh_of L) (full L) x e.

(* the values of x after: its summand of every element of its tile *)
Definition element (L : layout) (x : dev) (l : idx) : idx :=
  ev (mesh_of L) (unreduced L) x :: gidx (mesh_of L) (dims L) x l.

Lemma has_element L x e : layout_ok L = true -> valid (mesh_of L) x ->
  has L x e <-> exists l, in_tile (mesh_of L) (dims L) x l /\ element L x l = e.
Proof.
  intros OK Hx. apply layout_ok_iff in OK as [Hm W]. unfold has, element. split.
  - intros H. destruct e as [|u g]. { destruct H as [[H _] _]. simpl in H. lia. }
    apply holds_full in H as [_ [<- H]]; auto. destruct (holds_tile _ _ _ _ Hm H) as [H1 H2].
    exists (rem (mesh_of L) (dims L) g). rewrite H2. auto.
  - intros [l [T <-]]. apply holds_full; auto. split; [apply ev_lt; auto|]. split; auto. apply tile_holds; auto.
Qed.

Lemma element_inj L x l l' : in_tile (mesh_of L) (dims L) x l -> in_tile (mesh_of L) (dims L) x l' ->
  element L x l = element L x l' -> l = l'.
Proof. intros [[H _] _] [[H' _] _] E. injection E as E. eapply gidx_inj; eauto. Qed.

Definition fetched (k : kind) (L L' : layout) (x : dev) : list idx :=
  filter (fun l => negb (others L L' x (sources k L L' x l) =? 0)) (tile (mesh_of L') (dims L') x).

Definition moves (k : kind) : bool :=
  match k with reduce_scatter | all_reduce | zero_fill => false | _ => true end.

Lemma others_one L L' x y : others L L' x [y] = if same_mesh L L' && same_list y x then 0 else 1.
Proof. unfold others. simpl. destruct (same_mesh L L' && same_list y x); auto. Qed.

Lemma moves_source k L L' x l : moves k = true -> exists y, sources k L L' x l = [y].
Proof. destruct k; simpl; intros H; try discriminate; eauto. Qed.

Lemma fetched_received k L L' x : moves k = true -> length (fetched k L L' x) = received k L L' x.
Proof.
  intros MV. unfold fetched, received. rewrite <- sumf_count. induction (tile (mesh_of L') (dims L') x); simpl; auto.
  rewrite IHl. destruct (moves_source k L L' x a MV) as [y ->]. rewrite others_one.
  destruct (same_mesh L L' && same_list y x); auto.
Qed.

(* An exchange fetches exactly what is not there. *)
Lemma exchange_fetched L L' x l : layout_ok L = true -> layout_ok L' = true -> same_shape (dims L) (dims L') ->
  summand_count L = summand_count L' -> same_mesh L L' = true -> valid (mesh_of L') x ->
  In l (tile (mesh_of L') (dims L') x) ->
  In l (fetched exchange L L' x) <-> ~ has L x (element L' x l).
Proof.
  intros OK OK' SH SU EM Hx Hl. unfold fetched. rewrite filter_In, negb_true_iff.
  change (sources exchange L L' x l) with [pull_dev L L' x (gidx (mesh_of L') (dims L') x l)].
  rewrite others_one, EM. simpl andb.
  pose proof EM as E. apply same_mesh_ok in E. pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  pose proof Hl as Hl'. apply in_tile_list in Hl' as [_ Hs].
  destruct (pull_dev_holds L L' x _ OK OK' SH SU Hx Hs) as [V1 [H1 E1]].
  set (y := pull_dev L L' x (gidx (mesh_of L') (dims L') x l)) in *.
  assert (HX : y = x <-> has L x (element L' x l)).
  { unfold element. split.
    - intros EY. apply holds_full; auto. rewrite EY in *. split; [|split; auto].
      rewrite SU. apply ev_lt; auto.
    - intros H. unfold y, pull_dev. rewrite EM. apply setdims_home; auto. rewrite E; auto. }
  rewrite <- HX. destruct (same_list y x) eqn:SL.
  - apply same_list_ok in SL. simpl. split; [intros [_ H]; discriminate|tauto].
  - simpl. split; [|auto]. intros _ EY. apply same_list_ok in EY. congruence.
Qed.

(* On every device at once, no protocol that ends with the target distribution receives less than an exchange. *)
Theorem exchange_optimal L L' x ts H' : layout_ok L = true -> layout_ok L' = true ->
  same_shape (dims L) (dims L') -> summand_count L = summand_count L' -> same_mesh L L' = true ->
  valid (mesh_of L') x ->
  protocol dev idx (has L) ts H' -> (forall y e, has L' y e -> H' y e) ->
  received exchange L L' x <= recv dev idx dev_eq x ts.
Proof.
  intros OK OK' SH SU EM Hx P HT. rewrite <- fetched_received, <- (map_length (element L' x)) by auto.
  assert (FT : forall l, In l (fetched exchange L L' x) -> In l (tile (mesh_of L') (dims L') x))
    by (intros l Hl; apply filter_In in Hl; tauto).
  eapply recv_lower_bound; eauto.
  - assert (ND : NoDup (fetched exchange L L' x)) by apply NoDup_filter, nodup_tile.
    revert FT. induction ND as [|l ls N ND IH]; simpl; intros FT; constructor; auto.
    intros I. apply in_map_iff in I as [l' [E I]]. apply N.
    apply element_inj in E; [subst; auto| |]; apply in_tile_list, FT; auto.
  - intros e He. apply in_map_iff in He as [l [<- Hl]]. split.
    + apply HT, has_element; auto. exists l. split; auto. apply in_tile_list; auto.
    + apply (exchange_fetched L L' x l); auto.
Qed.

(* ... in particular no accepted plan of movements does. *)
Lemma step_has L k L' x e : layout_ok L = true -> type_step L k L' = true -> moves k = true ->
  same_mesh L L' = true -> valid (mesh_of L') x -> has L' x e ->
  has L x e \/ In e (map (element L' x) (fetched k L L' x)).
Proof.
  intros OK T MV EM Hx He. apply type_step_inv in T as [OK' [SH P]].
  apply (has_element L' x e OK' Hx) in He as [l [Hl <-]].
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  destruct (moves_source k L L' x l MV) as [y SY].
  assert (HY : has L y (element L' x l)).
  { assert (PD : k <> permute -> y = pull_dev L L' x (gidx (mesh_of L') (dims L') x l)).
    { intros NP. destruct k; simpl in *; try congruence; try discriminate; injection SY; auto. }
    unfold element. apply holds_full; auto.
    assert (SU : summand_count L = summand_count L').
    { unfold summand_count. destruct k; simpl in P, MV; try discriminate; rewrite ?andb_true_iff in P;
        rewrite ?same_mesh_ok, ?same_unreduced_ok in P.
      - destruct P as [[-> ->] _]; auto.
      - destruct P as [[-> ->] _]; auto.
      - destruct P as [[[-> ->] _] _]; auto.
      - destruct P as [E [P _]]. unfold same_shards, shard_count in P; simpl in P.
        apply Nat.eqb_eq in P. rewrite P, E. reflexivity.
      - apply Nat.eqb_eq; auto. }
    split. { rewrite SU. apply ev_lt; auto. }
    destruct (tile_holds _ _ _ _ Hl) as [Hh _].
    destruct k; try discriminate;
      try (rewrite PD by discriminate; destruct (pull_dev_holds L L' x _ OK OK' SH SU Hx (proj1 Hh)) as [_ [A B]];
        auto).
    injection SY as <-. destruct (permute_holds L L' x _ OK OK' SH P Hx Hh) as [_ [A [B _]]]. auto. }
  destruct (same_list y x) eqn:SL.
  - left. apply same_list_ok in SL. subst; auto.
  - right. apply in_map. unfold fetched. apply filter_In. split. { apply in_tile_list; auto. }
    rewrite SY, others_one, EM, SL. reflexivity.
Qed.

Lemma walk_has bound tgt n L p v w m x : layout_ok L = true -> walk bound tgt n L p v = Accept w ->
  mesh_of L = m -> (forall s, In s p -> mesh_of (snd s) = m /\ moves (fst s) = true) -> valid m x ->
  exists R, length R = received_plan L p (map (fun _ => x) p) /\
    forall e, has tgt x e -> has L x e \/ In e R.
Proof.
  revert n L v; induction p as [|[k L1] p IH]; simpl; intros n L v OK H EM HP Hx.
  - destruct (same_layout L tgt) eqn:E; [|discriminate]. apply same_layout_ok in E. subst.
    exists []. repeat split; auto.
  - destruct (type_step L k L1) eqn:T; [|discriminate].
    destruct (within bound (tile_elements L1)) eqn:B; [|discriminate].
    pose proof (type_step_inv _ _ _ T) as [OK1 _].
    destruct (HP (k, L1) (or_introl eq_refl)) as [E1 MV]. simpl in E1, MV.
    destruct (IH _ _ _ OK1 H E1 (fun s I => HP s (or_intror I)) Hx) as [R [RL RH]].
    exists (map (element L1 x) (fetched k L L1 x) ++ R).
    split. { rewrite app_length, map_length, fetched_received, RL by auto. reflexivity. }
    intros e He. rewrite in_app_iff. destruct (RH e He) as [H1|H1]; auto.
    assert (SM : same_mesh L L1 = true) by (apply same_mesh_ok; congruence).
    rewrite <- E1 in Hx. destruct (step_has L k L1 x e OK T MV SM Hx H1); auto.
Qed.

(* No accepted plan of movements on one mesh receives less than one exchange, on any device. *)
Theorem plan_lower_bound p bound v x : check_plan p bound = Accept v ->
  (forall s, In s (steps p) -> mesh_of (snd s) = mesh_of (source p) /\ moves (fst s) = true) ->
  mesh_of (target p) = mesh_of (source p) -> summand_count (source p) = summand_count (target p) ->
  valid (mesh_of (source p)) x ->
  received exchange (source p) (target p) x <= received_plan (source p) (steps p) (map (fun _ => x) (steps p)).
Proof.
  intros C HP EM SU Hx. unfold check_plan in C.
  destruct (layout_ok (source p)) eqn:O1; [|discriminate]. destruct (layout_ok (target p)) eqn:O2; [|discriminate].
  destruct (same_array (source p) (target p)) eqn:SA; [|discriminate].
  destruct (within bound (tile_elements (source p))) eqn:B; [|discriminate]. simpl in C.
  apply same_array_ok in SA.
  destruct (walk_has _ _ _ _ _ _ _ _ x O1 C eq_refl HP Hx) as [R [RL RH]].
  rewrite <- RL, <- fetched_received, <- (map_length (element (target p) x)) by auto.
  assert (FT : forall l, In l (fetched exchange (source p) (target p) x) ->
    In l (tile (mesh_of (target p)) (dims (target p)) x)) by (intros l Hl; apply filter_In in Hl; tauto).
  assert (SM : same_mesh (source p) (target p) = true) by (apply same_mesh_ok; auto).
  rewrite <- EM in Hx.
  apply NoDup_incl_length.
  - assert (ND : NoDup (fetched exchange (source p) (target p) x)) by apply NoDup_filter, nodup_tile.
    revert FT. induction ND as [|l ls N ND IH]; simpl; intros FT; constructor; auto.
    intros I. apply in_map_iff in I as [l' [E I]]. apply N.
    apply element_inj in E; [subst; auto| |]; apply in_tile_list, FT; auto.
  - intros e He. apply in_map_iff in He as [l [<- Hl]].
    destruct (RH (element (target p) x l)) as [H|H]; auto.
    + apply has_element; auto. exists l. split; auto. apply in_tile_list; auto.
    + exfalso. apply (exchange_fetched (source p) (target p) x l) in Hl; auto.
Qed.
