(* The effect of every step on the tiles, and a proof that it keeps the meaning.
   exec k L L' S      the state after the step, element by element
   step_sound         a typed step takes a distribution of an array to a distribution of the same array *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning.

(* The device that x reads element g from: x itself, with the digits overwritten that decide who holds (summand, g).
   A device that holds it already reads from itself.  Across meshes no digit is kept. *)
Definition pull_dev (L L' : layout) (x : dev) (g : idx) : dev :=
  setdims (mesh_of L) (full L) (quot (mesh_of L) (full L) (ev (mesh_of L') (unreduced L') x :: g))
    (if same_mesh L L' then x else zero_dev (mesh_of L)).

(* The device whose whole tile x takes in a permute. *)
Definition perm_dev (m : mesh) (t t' : list dim) (x : dev) : dev :=
  setd m (rest m t) (ev m (rest m t') x) (setdims m t (shard_of m t' x) x).

(* unreduced atoms that a reduction removes, or a zero_fill adds *)
Definition reduced (L L' : layout) : list nat := minus (unreduced L) (unreduced L').
Definition added (L L' : layout) : list nat := minus (unreduced L') (unreduced L).

(* Among devices that differ on the added atoms, the one that keeps element g in a zero_fill. *)
Definition keeper (L L' : layout) (g : idx) : nat :=
  ev (mesh_of L) (added L L')
    (setdims (mesh_of L) (dims L) (quot (mesh_of L) (dims L) g) (zero_dev (mesh_of L))).

(* In an all_reduce the sum of an element runs down a chain through the ranks of the group and back up:
   first, first - 1, ..., 0, g - 1, ..., last = first + 1 (mod g).  The ends receive once, the others twice; element
   number n of the tile starts at rank 2n, so the ends are dealt out evenly. *)
Fixpoint flat (m : mesh) (t : list dim) (l : idx) : nat :=
  match t, l with _ :: t, i :: l => i * size m t + flat m t l | _, _ => 0 end.
Definition group_size (L L' : layout) : nat := prodsz (mesh_of L) (reduced L L').
Definition first (L L' : layout) (l : idx) : nat := (2 * flat (mesh_of L) (dims L) l) mod group_size L L'.
Definition last (L L' : layout) (l : idx) : nat := (2 * flat (mesh_of L) (dims L) l + 1) mod group_size L L'.
Definition chain (from g : nat) : list nat := rev (seq 0 (S from)) ++ rev (seq (S from) (g - S from)).

Section Simulate.
Context {V : Type} (M : monoid V).

Definition sum_group (L L' : layout) (S : state V) (x : dev) (l : idx) : V :=
  sumn M (fun w => S (setd (mesh_of L) (reduced L L') w x) l) (group_size L L').
Definition sum_chain (L L' : layout) (S : state V) (x : dev) (l : idx) : V :=
  fold_right (add M) (zero M)
    (map (fun w => S (setd (mesh_of L) (reduced L L') w x) l) (chain (first L L' l) (group_size L L'))).

Definition exec (k : kind) (L L' : layout) (S : state V) : state V :=
  fun x l =>
    let m := mesh_of L in
    let g := gidx (mesh_of L') (dims L') x l in
    let here := rem m (dims L) g in
    match k with
    | slice | all_gather | all_to_all | exchange => S (pull_dev L L' x g) here
    | permute => S (perm_dev m (full L) (full L') x) here
    | reduce_scatter => sum_group L L' S x here
    | all_reduce => sum_chain L L' S x here
    | zero_fill => if ev m (added L L') x =? keeper L L' g then S x here else zero M
    end.
End Simulate.

Lemma sum_list_perm {V} (M : monoid V) l l' : Permutation l l' ->
  fold_right (add M) (zero M) l = fold_right (add M) (zero M) l'.
Proof.
  induction 1; simpl; auto; try congruence. rewrite !add_assoc, (add_comm _ M x y). reflexivity.
Qed.
Lemma sumn_list {V} (M : monoid V) f n : sumn M f n = fold_right (add M) (zero M) (map f (seq 0 n)).
Proof.
  induction n; auto. rewrite seq_S, map_app. simpl. rewrite IHn.
  rewrite (sum_list_perm M _ _ (Permutation_app_comm (map f (seq 0 n)) [f n])). simpl. apply add_comm.
Qed.
(* Along the chain every rank adds once. *)
Lemma chain_perm from g : from < g -> Permutation (chain from g) (seq 0 g).
Proof.
  intros H. unfold chain. replace g with (S from + (g - S from)) at 2 by lia. rewrite seq_app.
  apply Permutation_app; apply Permutation_sym, Permutation_rev.
Qed.
Lemma sum_chain_group {V} (M : monoid V) L L' (S : state V) x l : 0 < group_size L L' ->
  sum_chain M L L' S x l = sum_group M L L' S x l.
Proof.
  intros H. unfold sum_chain, sum_group. rewrite sumn_list. apply sum_list_perm, Permutation_map, chain_perm.
  apply Nat.mod_upper_bound. lia.
Qed.

Lemma same_mesh_ok L L' : same_mesh L L' = true <-> mesh_of L = mesh_of L'.
Proof. apply same_list_ok. Qed.
Lemma same_unreduced_ok L L' : same_unreduced L L' = true <-> unreduced L = unreduced L'.
Proof. apply same_list_ok. Qed.

Lemma in_shape_same t t' g : same_shape t t' -> in_shape t g -> in_shape t' g.
Proof.
  intros H [HL HB]. pose proof (same_shape_length _ _ H). split; [lia|]. intros i Hi.
  rewrite <- (same_shape_at t t' i H). apply HB; lia.
Qed.
Lemma same_shape_sym t t' : same_shape t t' -> same_shape t' t.
Proof. unfold same_shape; auto. Qed.

Lemma base_valid L L' x : mesh_ok (mesh_of L) = true -> valid (mesh_of L') x ->
  valid (mesh_of L) (if same_mesh L L' then x else zero_dev (mesh_of L)).
Proof.
  intros Hm Hx. destruct (same_mesh L L') eqn:E.
  - apply same_mesh_ok in E. rewrite E; auto.
  - apply zero_valid; auto.
Qed.

(* pull_dev finds a holder of the same summand *)
Lemma pull_dev_holds L L' x g : layout_ok L = true -> layout_ok L' = true ->
  same_shape (dims L) (dims L') -> summand_count L = summand_count L' ->
  valid (mesh_of L') x -> in_shape (dims L') g ->
  valid (mesh_of L) (pull_dev L L' x g) /\
  holds (mesh_of L) (dims L) (pull_dev L L' x g) g /\
  ev (mesh_of L) (unreduced L) (pull_dev L L' x g) = ev (mesh_of L') (unreduced L') x.
Proof.
  intros OK OK' SH SU Hx Hg. apply layout_ok_iff in OK as [Hm W].
  assert (HS : in_shape (full L) (ev (mesh_of L') (unreduced L') x :: g)).
  { apply same_shape_sym in SH. pose proof (in_shape_same _ _ _ SH Hg) as [HL HB].
    split. { simpl; lia. } intros [|i] Hi; simpl.
    - rewrite SU. apply ev_lt; auto.
    - apply HB. simpl in Hi; lia. }
  destruct (setdims_holds _ _ _ _ Hm W (base_valid L L' x Hm Hx) HS) as [V1 H1].
  fold (pull_dev L L' x g) in V1, H1. apply holds_full in H1 as [_ [H2 H3]]; auto.
Qed.

Lemma pull_sound {V} L L' A (S : state V) : layout_ok L = true -> layout_ok L' = true ->
  same_shape (dims L) (dims L') -> summand_count L = summand_count L' -> denotes L A S ->
  denotes L' A (fun x l => let g := gidx (mesh_of L') (dims L') x l in
                           S (pull_dev L L' x g) (rem (mesh_of L) (dims L) g)).
Proof.
  intros OK OK' SH SU D x l Hx Hl. cbv zeta.
  destruct (tile_holds _ _ _ _ Hl) as [[Hs _] _].
  destruct (pull_dev_holds L L' x _ OK OK' SH SU Hx Hs) as [V1 [H1 E1]].
  rewrite (denotes_holds L A S _ _ OK D V1 H1), E1. reflexivity.
Qed.

(* permute *)
Lemma same_shards_map m t t' : forall2b (same_shards m) t t' = true ->
  map (shard_count m) t = map (shard_count m) t'.
Proof.
  revert t'; induction t; destruct t'; simpl; intros H; auto; try discriminate.
  apply andb_true_iff in H as [H1 H2]. apply Nat.eqb_eq in H1. f_equal; auto.
Qed.

Lemma perm_dev_spec m t t' x : wf m t -> wf m t' -> valid m x -> forall2b (same_shards m) t t' = true ->
  valid m (perm_dev m t t' x) /\
  shard_of m t (perm_dev m t t' x) = shard_of m t' x /\
  ev m (rest m t) (perm_dev m t t' x) = ev m (rest m t') x.
Proof.
  intros W W' Hx P. pose proof (valid_mesh_ok m x Hx) as Hm.
  pose proof (same_shards_map _ _ _ P) as E. apply forall2b_at in P as [HL HP].
  assert (Q : in_shards m t (shard_of m t' x)).
  { split. { rewrite shard_of_length; auto. } intros n Hn. rewrite shard_of_nth.
    specialize (HP n Hn). apply Nat.eqb_eq in HP. rewrite HP. apply ev_lt; auto. }
  assert (V1 : valid m (setdims m t (shard_of m t' x) x)) by (apply setdims_valid; auto).
  assert (R : ev m (rest m t') x < prodsz m (rest m t)).
  { rewrite (prodsz_rest m t t'); auto. apply ev_lt; auto. }
  unfold perm_dev. split. { apply setd_valid; auto. } split.
  - apply nth_ext with 0 0. { rewrite !shard_of_length; auto. }
    intros i Hi. rewrite shard_of_length in Hi. rewrite (shard_of_nth m t).
    rewrite ev_setd_disj.
    + rewrite ev_setdims; auto. apply Hx.
    + intros a H1 H2. apply in_rest in H2 as [_ H2]. apply H2. eapply in_used; eauto.
  - apply ev_setd; auto using nodup_rest. intros a H. apply in_rest in H as [H _].
    destruct V1 as [EV _]; rewrite EV; auto.
Qed.

(* A permute is a bijection on devices: permuting back returns every tile. *)
Theorem permute_bijective m t t' x : wf m t -> wf m t' -> valid m x -> forall2b (same_shards m) t t' = true ->
  perm_dev m t' t (perm_dev m t t' x) = x.
Proof.
  intros W W' Hx P.
  assert (P' : forall2b (same_shards m) t' t = true).
  { rewrite forall2b_at in *. destruct P as [HL H]; split; auto. intros i Hi.
    specialize (H i ltac:(lia)). unfold same_shards in *. rewrite Nat.eqb_eq in *. lia. }
  destruct (perm_dev_spec m t t' x W W' Hx P) as [V1 [E R]].
  destruct (perm_dev_spec m t' t _ W' W V1 P') as [V2 [E2 R2]].
  set (z := perm_dev m t' t (perm_dev m t t' x)) in *.
  apply (dev_ext m); auto. intros a Ha. destruct (in_dec Nat.eq_dec a (used t')) as [I|I].
  - apply used_in in I as [i [Hi I]]. apply (ev_inj m (atoms (dim_at t' i)) z x); auto.
    rewrite <- !shard_of_nth. congruence.
  - apply (ev_inj m (rest m t') z x); auto. { congruence. } apply in_rest; auto.
Qed.

Lemma same_shards_quot m t t' g : same_shape t t' -> forall2b (same_shards m) t t' = true ->
  quot m t g = quot m t' g /\ rem m t g = rem m t' g.
Proof.
  unfold same_shape. revert t' g; induction t as [|d t IH]; destruct t' as [|e t']; simpl; intros g SH P;
    try discriminate; auto.
  injection SH as E1 E2. apply andb_true_iff in P as [P1 P2]. apply Nat.eqb_eq in P1.
  destruct g as [|i g]; auto. destruct (IH t' g E2 P2) as [-> ->].
  assert (T : tile_extent m d = tile_extent m e) by (unfold tile_extent; congruence). rewrite T; auto.
Qed.

Lemma permute_holds L L' x g : layout_ok L = true -> layout_ok L' = true ->
  same_shape (dims L) (dims L') -> rule L permute L' = true ->
  valid (mesh_of L') x -> holds (mesh_of L') (dims L') x g ->
  let y := perm_dev (mesh_of L) (full L) (full L') x in
  valid (mesh_of L) y /\ holds (mesh_of L) (dims L) y g /\
  ev (mesh_of L) (unreduced L) y = ev (mesh_of L') (unreduced L') x /\
  rem (mesh_of L) (dims L) g = rem (mesh_of L') (dims L') g.
Proof.
  intros OK OK' SH P Hx [Hs Hq] y. apply layout_ok_iff in OK as [Hm W], OK' as [_ W'].
  unfold rule in P. apply andb_true_iff in P as [E P]. apply same_mesh_ok in E. rewrite <- E in *.
  destruct (perm_dev_spec _ _ _ _ W W' Hx P) as [V1 [E1 _]]. fold y in V1, E1.
  unfold full in E1. simpl in E1. injection E1 as E2 E3.
  simpl in P. apply andb_true_iff in P as [_ P].
  destruct (same_shards_quot _ _ _ g SH P) as [Q1 Q2].
  split; auto. split; [|split; auto]. split.
  - apply in_shape_same with (dims L'); auto using same_shape_sym.
  - rewrite Q1, Hq. unfold shard_of. auto.
Qed.

(* Splitting a dimension further only shrinks tiles: a device that holds an element after held it before. *)
Lemma splits_holds m t t' x g : mesh_ok m = true -> valid m x -> same_shape t t' ->
  forall2b (splits m) t t' = true -> holds m t' x g -> holds m t x g.
Proof.
  intros Hm Hx SH P [Hs Hq]. pose proof (in_shape_same _ _ _ (same_shape_sym _ _ SH) Hs) as Hs'.
  split; auto. apply forall2b_at in P as [HL P]. pose proof Hs as [GL GB]. pose proof Hs' as [GL' _].
  apply nth_ext with 0 0. { rewrite quot_length, shard_of_length; auto. }
  intros i Hi. rewrite quot_length in Hi by auto. rewrite quot_nth, shard_of_nth by auto.
  specialize (P i Hi). apply splits_ok in P as [B [EB ET]].
  assert (Q : nth i (quot m t' g) 0 = nth i (shard_of m t' x) 0) by (rewrite Hq; auto).
  rewrite quot_nth, shard_of_nth, EB, ev_app in Q by lia.
  destruct (in_shape_tile m t' g i Hm Hs ltac:(lia)) as [T _].
  pose proof (mesh_ok_prodsz m B Hm). pose proof (ev_lt m B x Hx).
  rewrite ET. destruct (Nat.le_gt_cases (tile_extent m (dim_at t' i) * prodsz m B) (extent (dim_at t' i))) as [C|C].
  - rewrite Nat.min_r, <- Nat.div_div, Q by lia. rewrite Nat.div_add_l, Nat.div_small by lia. lia.
  - (* the whole dimension is one tile *)
    specialize (GB i ltac:(lia)). rewrite Nat.min_l by lia. rewrite Nat.div_small by lia.
    assert (nth i g 0 / tile_extent m (dim_at t' i) < prodsz m B) by (apply Nat.div_lt_upper_bound; lia). nia.
Qed.

(* The digits U of x, written on the zero device. *)
Lemma recover m U x : NoDup U -> (forall a, In a U -> a < length m) -> valid m x ->
  forall W, (forall a, In a W -> In a U) -> ev m W (setd m U (ev m U x) (zero_dev m)) = ev m W x.
Proof.
  intros ND HL Hx W HW. pose proof (zero_valid m (valid_mesh_ok m x Hx)) as Z.
  apply ev_ext. intros a Ha. apply (ev_inj m U); auto.
  - apply setd_valid; auto. apply ev_lt; auto.
  - apply ev_setd; auto. { intros b Hb. rewrite (proj1 Z); auto. } apply ev_lt; auto.
Qed.

Lemma wf_unreduced L : wf (mesh_of L) (full L) ->
  NoDup (unreduced L) /\ (forall a, In a (unreduced L) -> a < length (mesh_of L)) /\
  forall a, In a (unreduced L) -> ~ In a (used (dims L)).
Proof. intros W. apply (wf_head _ _ _ W). Qed.

Lemma shard_of_setd m t U v x : (forall a, In a U -> ~ In a (used t)) ->
  shard_of m t (setd m U v x) = shard_of m t x.
Proof.
  intros H. unfold shard_of. apply map_ext_in. intros d Hd. apply ev_setd_disj.
  intros a Ha I. apply (H a I). unfold used. apply in_flat_map. exists d; auto.
Qed.

Lemma minus_split l l' : NoDup l -> NoDup l' -> (forall a, In a l' -> In a l) ->
  Permutation l (l' ++ minus l l').
Proof.
  intros N N' H. apply NoDup_Permutation; auto.
  - apply nodup_app_intro; auto using nodup_minus. intros a I J. apply in_minus in J. tauto.
  - intros a. rewrite in_app_iff, in_minus. destruct (in_dec Nat.eq_dec a l'); intuition.
Qed.

Section Sound.
Context {V : Type} (M : monoid V).

(* Summing the devices that differ on the removed atoms, at an element that x holds before. *)
Definition reduced_family (L L' : layout) (A : nat -> idx -> V) (v : nat) (g : idx) : V :=
  let m := mesh_of L in
  sumd M m (reduced L L') (fun y => A (ev m (unreduced L) y) g) (setd m (unreduced L') v (zero_dev m)).

Lemma sum_group_sound L L' A (S : state V) x g : layout_ok L = true -> layout_ok L' = true ->
  mesh_of L = mesh_of L' -> (forall a, In a (unreduced L') -> In a (unreduced L)) ->
  denotes L A S -> valid (mesh_of L) x -> holds (mesh_of L) (dims L) x g ->
  sum_group M L L' S x (rem (mesh_of L) (dims L) g) =
  reduced_family L L' A (ev (mesh_of L) (unreduced L') x) g.
Proof.
  intros OK OK' EM HU D Hx Hh. pose proof OK as OK1.
  apply layout_ok_iff in OK1 as [Hm W]. apply layout_ok_iff in OK' as [_ W'].
  destruct (wf_unreduced _ W) as [ND [HL HD]]. destruct (wf_unreduced _ W') as [ND' [HL' _]].
  rewrite <- EM in HL'. unfold sum_group, reduced_family, sumd. apply sumn_ext. intros w Hw.
  set (R := reduced L L') in *.
  assert (Vw : valid (mesh_of L) (setd (mesh_of L) R w x)) by (apply setd_valid; auto).
  assert (HR : forall a, In a R -> In a (unreduced L) /\ ~ In a (unreduced L')) by (intros a; apply in_minus).
  rewrite (denotes_holds L A S _ g OK D Vw).
  2: { destruct Hh as [H1 H2]. split; auto. rewrite shard_of_setd; auto. intros a Ha. apply HD, HR; auto. }
  f_equal. apply ev_ext. intros a Ha.
  pose proof (zero_valid _ Hm) as [ZL _].
  destruct (in_dec Nat.eq_dec a R) as [I|I].
  - apply setd_in; auto. rewrite setd_length, ZL. apply Hx.
  - rewrite !setd_other by auto.
    assert (I' : In a (unreduced L')).
    { destruct (in_dec Nat.eq_dec a (unreduced L')); auto. exfalso. apply I. apply in_minus; auto. }
    pose proof (recover (mesh_of L) (unreduced L') x ND' HL' Hx [a]) as E. simpl in E.
    rewrite !Nat.mul_1_r, !Nat.add_0_r in E. symmetry. apply E. intros b [<-|[]]; auto.
Qed.

Lemma reduced_total L L' A g : layout_ok L = true -> layout_ok L' = true -> mesh_of L = mesh_of L' ->
  (forall a, In a (unreduced L') -> In a (unreduced L)) ->
  total M L' (reduced_family L L' A) g = total M L A g.
Proof.
  intros OK OK' EM HU. rewrite (total_sumd M L) by auto.
  apply layout_ok_iff in OK as [Hm W]. apply layout_ok_iff in OK' as [_ W'].
  destruct (wf_unreduced _ W) as [ND _]. destruct (wf_unreduced _ W') as [ND' _].
  rewrite (sumd_perm M (mesh_of L) _ _ _ (minus_split _ _ ND ND' HU)) by auto.
  rewrite sumd_app. unfold total, summand_count, sumd at 1. rewrite <- EM. reflexivity.
Qed.

(* zero_fill: a device holds what it keeps *)
Lemma keeper_holds L L' x g : layout_ok L = true -> layout_ok L' = true ->
  same_shape (dims L) (dims L') -> rule L zero_fill L' = true ->
  valid (mesh_of L) x -> holds (mesh_of L) (dims L') x g ->
  ev (mesh_of L) (added L L') x = keeper L L' g -> holds (mesh_of L) (dims L) x g.
Proof.
  intros OK OK' SH P Hx [Hs Hq] HK. apply layout_ok_iff in OK as [Hm W].
  set (m := mesh_of L) in *. unfold rule in P. fold m in P.
  apply andb_true_iff in P as [P PN]. apply andb_true_iff in P as [_ P].
  rewrite subset_ok in PN. apply forall2b_at in P as [HL P].
  pose proof (in_shape_same _ _ _ (same_shape_sym _ _ SH) Hs) as Hs'. split; auto.
  pose proof Hs as [GL GB]. pose proof Hs' as [GL' _].
  pose proof (wf_tail _ _ _ W) as Wd. pose proof (zero_valid m Hm) as Z.
  pose proof (quot_in_shards m (dims L) g Hm Hs') as Q.
  set (y := setdims m (dims L) (quot m (dims L) g) (zero_dev m)) in *.
  assert (Vy : valid m y) by (apply setdims_valid; auto).
  apply nth_ext with 0 0. { rewrite quot_length, shard_of_length; auto. }
  intros i Hi. rewrite quot_length in Hi by auto. rewrite quot_nth, shard_of_nth by auto.
  pose proof (P i Hi) as Pi. unfold joins in Pi. apply splits_ok in Pi as [B [EB ET]].
  assert (Qi : nth i (quot m (dims L') g) 0 = nth i (shard_of m (dims L') x) 0) by (rewrite Hq; auto).
  rewrite quot_nth, shard_of_nth in Qi by lia.
  destruct (in_shape_tile m (dims L) g i Hm Hs' Hi) as [T _].
  pose proof (mesh_ok_prodsz m B Hm) as PB.
  assert (Qj : nth i g 0 / tile_extent m (dim_at (dims L) i) / prodsz m B = ev m (atoms (dim_at (dims L') i)) x).
  { rewrite <- Qi, ET.
    destruct (Nat.le_gt_cases (tile_extent m (dim_at (dims L) i) * prodsz m B) (extent (dim_at (dims L) i))) as [C|C].
    - rewrite Nat.min_r, Nat.div_div by lia. auto.
    - pose proof (proj2 Hs' i Hi). rewrite Nat.min_l by lia. rewrite (Nat.div_small (nth i g 0) (extent (dim_at (dims
      L) i))) by lia.
      apply Nat.div_small, Nat.div_lt_upper_bound; lia. }
  clear Qi. rename Qj into Qi.
  assert (EY : ev m (atoms (dim_at (dims L) i)) y = nth i g 0 / tile_extent m (dim_at (dims L) i)).
  { unfold y. rewrite ev_setdims; auto; [|apply Z]. apply quot_nth; auto. }
  assert (EX : ev m B x = ev m B y).
  { apply ev_ext. intros a Ha. apply (ev_inj m (added L L') x y Hx Vy HK).
    assert (I : In a (used (dims L))). { apply (in_used _ i). rewrite EB. apply in_or_app; auto. }
    apply in_minus. split.
    - apply PN. apply in_minus. split; auto. intros J. apply used_in in J as [j [Hj J]].
      assert (Hj' : j < length (dims L)) by lia.
      specialize (P j Hj'). unfold joins in P. apply splits_ok in P as [C [EC _]].
      destruct (Nat.eq_dec j i) as [->|N].
      + pose proof (nodup_atoms _ i (proj1 Wd)) as NDi. rewrite EB in NDi.
        eapply nodup_app_disj; eauto.
      + apply (atoms_disj (dims L) j i a); auto. { apply Wd. } { rewrite EC. apply in_or_app; auto. }
        rewrite EB. apply in_or_app; auto.
    - intros J. destruct (wf_unreduced _ W) as [_ [_ HD]]. exact (HD a J I). }
  rewrite EB, ev_app in EY |- *. pose proof (ev_lt m B y Vy) as LB.
  rewrite <- EY in Qi. rewrite Nat.div_add_l, Nat.div_small in Qi by lia.
  rewrite <- EY, EX. nia.
Qed.

Definition filled_family (L L' : layout) (A : nat -> idx -> V) (v : nat) (g : idx) : V :=
  let m := mesh_of L in let z := setd m (unreduced L') v (zero_dev m) in
  if ev m (added L L') z =? keeper L L' g then A (ev m (unreduced L) z) g else zero M.

Lemma filled_total L L' A g : layout_ok L = true -> layout_ok L' = true -> mesh_of L = mesh_of L' ->
  (forall a, In a (unreduced L) -> In a (unreduced L')) -> in_shape (dims L) g ->
  total M L' (filled_family L L' A) g = total M L A g.
Proof.
  intros OK OK' EM HU Hg. rewrite (total_sumd M L) by auto.
  apply layout_ok_iff in OK as [Hm W]. apply layout_ok_iff in OK' as [_ W'].
  destruct (wf_unreduced _ W) as [ND [HL _]]. destruct (wf_unreduced _ W') as [ND' [HL' _]].
  pose proof (zero_valid _ Hm) as Z.
  set (m := mesh_of L) in *. set (N := added L L').
  assert (T : total M L' (filled_family L L' A) g =
    sumd M m (unreduced L') (fun z => if ev m N z =? keeper L L' g then A (ev m (unreduced L) z) g else zero M)
      (zero_dev m)).
  { unfold total, summand_count, sumd. rewrite <- EM. reflexivity. }
  rewrite T, (sumd_perm M m _ _ _ (minus_split _ _ ND' ND HU)) by auto. fold N.
  rewrite sumd_app. unfold sumd at 1 3. apply sumn_ext. intros v Hv.
  set (z := setd m (unreduced L) v (zero_dev m)).
  assert (Vz : valid m z) by (apply setd_valid; auto).
  assert (NN : NoDup N) by (apply nodup_minus; auto).
  assert (NL : forall a, In a N -> a < length z).
  { intros a Ha. apply in_minus in Ha. rewrite (proj1 Vz), EM. apply HL'; tauto. }
  assert (KL : keeper L L' g < prodsz m N).
  { apply ev_lt. apply setdims_valid; auto. apply quot_in_shards; auto. }
  rewrite <- (sumn_one M (fun _ => A (ev m (unreduced L) z) g) (prodsz m N) _ KL).
  unfold sumd. apply sumn_ext. intros w Hw. rewrite ev_setd by auto.
  rewrite ev_setd_disj; auto. intros a Ha J. apply in_minus in J. tauto.
Qed.

Theorem step_sound L k L' (G : idx -> V) (S : state V) :
  layout_ok L = true -> type_step L k L' = true -> represents M L G S -> represents M L' G (exec M k L L' S).
Proof.
  intros OK T [A [D HT]]. apply type_step_inv in T as [OK' [SH P]].
  pose proof (same_shape_sym _ _ SH) as SH'.
  assert (Pull : summand_count L = summand_count L' ->
    represents M L' G (fun x l => let g := gidx (mesh_of L') (dims L') x l in
                                  S (pull_dev L L' x g) (rem (mesh_of L) (dims L) g))).
  { intros SU. exists A. split. { apply pull_sound; auto. }
    intros g Hg. unfold total. rewrite <- SU. apply HT. eapply in_shape_same; eauto. }
  assert (Same : same_mesh L L' && same_unreduced L L' = true -> summand_count L = summand_count L').
  { rewrite andb_true_iff, same_mesh_ok, same_unreduced_ok. unfold summand_count. intros [-> ->]; auto. }
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  destruct k.
  - apply Pull, Same. simpl in P. rewrite !andb_true_iff in *. tauto.
  - apply Pull, Same. simpl in P. rewrite !andb_true_iff in *. tauto.
  - apply Pull, Same. simpl in P. rewrite !andb_true_iff in *. tauto.
  - exists A. split.
    + intros x l Hx Hl. destruct (tile_holds _ _ _ _ Hl) as [Hh _]. unfold exec. cbv zeta.
      destruct (permute_holds L L' x _ OK OK' SH P Hx Hh) as [V1 [H1 [E1 _]]].
      rewrite (denotes_holds L A S _ _ OK D V1 H1), E1. reflexivity.
    + intros g Hg. unfold total. replace (summand_count L') with (summand_count L).
      * apply HT. eapply in_shape_same; eauto.
      * simpl in P. rewrite !andb_true_iff in P. destruct P as [E [P _]].
        apply Nat.eqb_eq in P. apply same_mesh_ok in E.
        unfold shard_count in P; simpl in P. unfold summand_count. rewrite <- E. exact P.
  - simpl in P. rewrite !andb_true_iff, same_mesh_ok, subset_ok in P. destruct P as [[[E U] P] _].
    exists (reduced_family L L' A). split.
    + intros x l Hx Hl. destruct (tile_holds _ _ _ _ Hl) as [Hh _]. unfold exec. cbv zeta.
      rewrite <- E in Hx, Hh |- *. apply sum_group_sound; auto.
      eapply splits_holds; eauto.
    + intros g Hg. rewrite reduced_total; auto. apply HT. eapply in_shape_same; eauto.
  - simpl in P. rewrite !andb_true_iff, same_mesh_ok, subset_ok in P. destruct P as [[E U] P].
    exists (reduced_family L L' A). split.
    + intros x l Hx Hl. destruct (tile_holds _ _ _ _ Hl) as [Hh _]. unfold exec. cbv zeta.
      rewrite <- E in Hx, Hh |- *. set (g := gidx (mesh_of L) (dims L') x l) in *.
      assert (Hh' : holds (mesh_of L) (dims L) x g).
      { eapply splits_holds; eauto. rewrite forall2b_at in *. destruct P as [HL P]. split; auto.
        intros i Hi. specialize (P i Hi). unfold same_atoms in P. apply same_list_ok in P.
        apply splits_ok. exists []. rewrite app_nil_r. split; auto. simpl. rewrite Nat.mul_1_r.
        rewrite Nat.min_r by (apply tile_le_extent; auto).
        unfold tile_extent, shard_count. rewrite P, (same_shape_at _ _ i SH). reflexivity. }
      rewrite <- (sum_group_sound L L' A S x g); auto. apply sum_chain_group, mesh_ok_prodsz; auto.
    + intros g Hg. rewrite reduced_total; auto. apply HT. eapply in_shape_same; eauto.
  - pose proof P as P0. simpl in P. rewrite !andb_true_iff, same_mesh_ok, !subset_ok in P.
    destruct P as [[[E U] P] N]. exists (filled_family L L' A). split.
    + intros x l Hx Hl. destruct (tile_holds _ _ _ _ Hl) as [Hh _]. unfold exec. cbv zeta.
      rewrite <- E in Hx, Hh |- *. set (g := gidx (mesh_of L) (dims L') x l) in *.
      unfold filled_family. apply layout_ok_iff in OK' as Wi. destruct Wi as [_ W'].
      destruct (wf_unreduced _ W') as [ND' [HL' _]]. rewrite <- E in HL'.
      rewrite !(recover (mesh_of L) (unreduced L') x ND' HL' Hx).
      2: { auto. } 2: { intros a Ha. apply in_minus in Ha. tauto. }
      destruct (Nat.eqb_spec (ev (mesh_of L) (added L L') x) (keeper L L' g)) as [K|K]; auto.
      apply denotes_holds; auto. eapply keeper_holds; eauto.
    + intros g Hg. rewrite filled_total; auto; [apply HT|]; eapply in_shape_same; eauto.
  - apply Pull. simpl in P. apply Nat.eqb_eq; auto.
Qed.
End Sound.
