(* Devices numbered anew on the way: a permute from one numbering of the same devices to another, as the rule renumber
   takes it.
   renumbers P P'       the same devices and array, each dimension in as many shards
   renumber_accepted    one permute is a plan, within one tile, and receives at most one tile
   renumber_first       a plan from the new numbering is one from the old, for one tile more
   renumber_last        a plan to the old numbering is one to the new, for what the permute receives
   renamed_for_nothing  which is nothing where each device has the same box under both names *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check Between.

Definition renumbers (P P' : placed) : bool :=
  negb (same_place P P') && placed_ok P' && same_array (lay P) (lay P') && cross_rule P permute P'.

Lemma size_shards m m' t t' : same_shape t t' -> map (shard_count m) t = map (shard_count m') t' ->
  size m t = size m' t'.
Proof.
  unfold same_shape. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; cbn [map]; intros SH SC;
    try discriminate; auto.
  injection SH as E1 E2. injection SC as C1 C2. cbn [size]. rewrite (IH t' E2 C2).
  unfold tile_extent. rewrite E1, C1. reflexivity.
Qed.

Lemma renumbers_inv P P' : renumbers P P' = true ->
  same_place P P' = false /\ placed_ok P' = true /\ same_array (lay P) (lay P') = true /\
  cross_rule P permute P' = true /\ tile_elements (lay P') = tile_elements (lay P).
Proof.
  unfold renumbers. rewrite !andb_true_iff, negb_true_iff. intros [[[SP OK] SA] C]. repeat split; auto.
  cbn [cross_rule] in C. apply andb_true_iff in C as [_ C]. apply same_list_ok in C. apply same_array_ok in SA.
  unfold tile_elements. symmetry. apply size_shards; auto.
Qed.

(* The certified number of the permute: one tile, or nothing. *)
Definition renumbered (P P' : placed) : nat := certified_placed permute P P'.
Lemma renumbered_le P P' : renumbers P P' = true -> renumbered P P' <= tile_elements (lay P).
Proof.
  intros R. apply renumbers_inv in R as [SP [_ [_ [_ T]]]]. unfold renumbered, certified_placed. rewrite SP.
  cbv zeta. destruct (foreign_between P P' =? 0); lia.
Qed.
Lemma renumber_typed P P' : renumbers P P' = true -> type_placed P permute P' = true.
Proof.
  intros R. apply renumbers_inv in R as [SP [OK [SA [C _]]]]. unfold type_placed. rewrite SP, OK, SA, C. auto.
Qed.

Lemma same_place_refl P : same_place P P = true.
Proof. unfold same_place. apply andb_true_iff. split; [apply same_mesh_ok|apply same_list_ok]; auto. Qed.
Lemma ends_here P Q : same_place P Q && same_layout (lay P) (lay Q) = true -> P = Q.
Proof.
  rewrite andb_true_iff. intros [S L]. unfold same_place in S. apply andb_true_iff in S as [_ N].
  apply same_list_ok in N. apply same_layout_ok in L. destruct P as [a n], Q as [b k]; cbn in *. subst. reflexivity.
Qed.

(* Acceptance does not depend on the elements held and received before. *)
Lemma walk_peak bound tgt p : forall n P v w, walk_placed bound tgt n P p v = Accept w -> peak v <= peak w.
Proof.
  induction p as [|[k P1] p IH]; cbn [walk_placed]; intros n P v w H.
  - destruct (_ && _); [|discriminate]. injection H as <-. lia.
  - destruct (type_placed P k P1); [|discriminate]. destruct (within bound _); [|discriminate].
    apply IH in H. cbn [peak] in H. lia.
Qed.
Lemma walk_again bound tgt p : forall n P v w n' v', walk_placed bound tgt n P p v = Accept w ->
  exists w', walk_placed bound tgt n' P p v' = Accept w' /\
    received_total w' + received_total v = received_total w + received_total v' /\
    peak w' <= Nat.max (peak v') (peak w).
Proof.
  induction p as [|[k P1] p IH]; cbn [walk_placed]; intros n P v w n' v' H.
  - destruct (_ && _); [|discriminate]. injection H as <-. exists v'. repeat split; lia.
  - destruct (type_placed P k P1); [|discriminate]. destruct (within bound _); [|discriminate].
    pose proof (walk_peak _ _ _ _ _ _ _ H) as PK. cbn [peak] in PK.
    destruct (IH _ _ _ _ (S n') (Verdict (Nat.max (peak v') (tile_elements (lay P1)))
      (received_total v' + certified_placed k P P1)) H) as [w' [A [R B]]].
    exists w'. cbn [received_total peak] in R, B. split; [exact A|]. split; lia.
Qed.
(* One more permute at the end. *)
Lemma walk_longer bound Q T p : renumbers Q T = true -> within bound (tile_elements (lay T)) = true ->
  forall n P v w, walk_placed bound Q n P p v = Accept w ->
  exists w', walk_placed bound T n P (p ++ [(permute, T)]) v = Accept w' /\
    received_total w' = received_total w + renumbered Q T /\ peak w' = Nat.max (peak w) (tile_elements (lay T)).
Proof.
  intros R B. induction p as [|[k P1] p IH]; cbn [walk_placed app]; intros n P v w H.
  - destruct (same_place P Q && same_layout (lay P) (lay Q)) eqn:E; [|discriminate]. injection H as <-.
    apply ends_here in E. subst P. rewrite (renumber_typed _ _ R), B, same_place_refl, same_layout_refl.
    eexists. split; [reflexivity|]. split; reflexivity.
  - destruct (type_placed P k P1); [|discriminate]. destruct (within bound (tile_elements (lay P1))); [|discriminate].
    apply IH; auto.
Qed.

(* One permute to another numbering is a plan by itself: within one tile, and at most one is received. *)
Theorem renumber_accepted P P' : placed_ok P = true -> renumbers P P' = true ->
  check_between (Placed_plan P P' [(permute, P')]) (Some (tile_elements (lay P))) =
    Accept (Verdict (tile_elements (lay P)) (renumbered P P')) /\ renumbered P P' <= tile_elements (lay P).
Proof.
  intros O1 R. split; [|apply renumbered_le; auto].
  pose proof (renumbers_inv _ _ R) as [SP [OK [SA [C T]]]]. unfold check_between. cbn [begins_at ends_at way].
  rewrite O1, OK, SA. cbn [negb within]. rewrite Nat.leb_refl. cbn [negb walk_placed].
  rewrite (renumber_typed _ _ R), T. cbn [within]. rewrite Nat.leb_refl, same_place_refl, same_layout_refl.
  cbn [andb peak received_total]. rewrite Nat.max_id. reflexivity.
Qed.

(* A plan from the new numbering is also one from the old numbering. *)
Theorem renumber_first P P' T p b v : placed_ok P = true -> renumbers P P' = true ->
  check_between (Placed_plan P' T p) (Some b) = Accept v ->
  exists w, check_between (Placed_plan P T ((permute, P') :: p)) (Some b) = Accept w /\
    peak w <= peak v /\ received_total w <= received_total v + tile_elements (lay P).
Proof.
  intros O1 R H. pose proof (renumbers_inv _ _ R) as [SP [OK [SA [C E]]]]. pose proof (renumbered_le _ _ R) as L.
  unfold check_between in *. cbn [begins_at ends_at way] in *. rewrite OK in H. rewrite O1.
  destruct (placed_ok T); [|discriminate]. destruct (same_array (lay P') (lay T)) eqn:SA'; [|discriminate].
  destruct (within (Some b) (tile_elements (lay P'))) eqn:B; [|discriminate]. cbn [negb] in *.
  assert (SAT : same_array (lay P) (lay T) = true).
  { apply same_array_ok. apply same_array_ok in SA, SA'. unfold same_shape in *. congruence. }
  rewrite E in B. rewrite SAT, B. cbn [negb walk_placed]. rewrite (renumber_typed _ _ R), E, B.
  pose proof (walk_peak _ _ _ _ _ _ _ H) as PK. rewrite E in *. cbn [peak received_total] in *.
  destruct (walk_again _ _ _ _ _ _ _ 2 (Verdict (Nat.max (tile_elements (lay P)) (tile_elements (lay P)))
    (0 + certified_placed permute P P')) H) as [w [A [RT BT]]].
  exists w. split; [exact A|]. unfold renumbered in L. cbn [received_total peak] in *. split; lia.
Qed.

(* A plan to the old numbering is also one to the new numbering. *)
Theorem renumber_last P Q T p b v : renumbers Q T = true -> tile_elements (lay Q) <= b ->
  check_between (Placed_plan P Q p) (Some b) = Accept v ->
  exists w, check_between (Placed_plan P T (p ++ [(permute, T)])) (Some b) = Accept w /\
    peak w = Nat.max (peak v) (tile_elements (lay Q)) /\
    received_total w = received_total v + renumbered Q T /\ renumbered Q T <= tile_elements (lay Q).
Proof.
  intros R BQ H. pose proof (renumbers_inv _ _ R) as [SP [OK [SA [C E]]]].
  unfold check_between in *. cbn [begins_at ends_at way] in *.
  destruct (placed_ok P); [|discriminate]. destruct (placed_ok Q); [|discriminate]. rewrite OK.
  destruct (same_array (lay P) (lay Q)) eqn:SA'; [|discriminate].
  assert (SAT : same_array (lay P) (lay T) = true).
  { apply same_array_ok. apply same_array_ok in SA, SA'. unfold same_shape in *. congruence. }
  rewrite SAT. destruct (within (Some b) (tile_elements (lay P))); [|discriminate]. cbn [negb] in *.
  assert (W : within (Some b) (tile_elements (lay T)) = true) by (rewrite E; apply Nat.leb_le; auto).
  destruct (walk_longer _ _ _ _ R W _ _ _ _ H) as [w [A [RT PT]]].
  exists w. split; [exact A|]. rewrite PT, E. repeat split; auto using renumbered_le.
Qed.

(* Which costs nothing where every device has the same box, of the same summand, under both names. *)
Definition boxes (m : mesh) (t : list dim) (x : dev) : list (nat * nat) := map (fun d => (begins m d x, ends m d x)) t.
Lemma shared_same m t y m' t' x : boxes m t y = boxes m' t' x -> shared m t y m' t' x = wanted m' t' x.
Proof.
  unfold boxes. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; cbn [map]; intros E; try discriminate;
    auto.
  injection E as E1 E2 E3. cbn [shared wanted]. rewrite (IH t' E3), E1, E2, Nat.min_id, Nat.max_id. reflexivity.
Qed.
Theorem renamed_for_nothing P P' : renumbers P P' = true ->
  (forall d x, In (d, x) (stands P') -> exists y, place_of P d = Some y /\
     ev (mesh_of (lay P)) (unreduced (lay P)) y = ev (mesh_of (lay P')) (unreduced (lay P')) x /\
     boxes (mesh_of (lay P)) (dims (lay P)) y = boxes (mesh_of (lay P')) (dims (lay P')) x) ->
  renumbered P P' = 0.
Proof.
  intros R H. apply renumbers_inv in R as [SP _]. unfold renumbered, certified_placed. rewrite SP. cbv zeta.
  assert (Z : foreign_between P P' = 0); [|rewrite Z; reflexivity].
  unfold foreign_between. cbv zeta. revert H. generalize (stands P') as l. induction l as [|[d x] l IH]; intros H; auto.
  cbn [map fold_right]. rewrite IH by (intros d' x' I; apply H; right; auto).
  destruct (H d x (or_introl eq_refl)) as [y [PL [E B]]]. unfold foreign_on. unfold place_of in PL. rewrite PL, E.
  rewrite Nat.eqb_refl, (shared_same _ _ _ _ _ _ B). lia.
Qed.
