(* On atoms of prime size, for sizes that divide: every redistribution has a plan within the memory of its ends.
   three_stage                one slice, one exchange, one all_gather; nobody receives more than its target tile
   memory_bounded_existence   one slice, permutes and all_to_alls, one all_gather: no exchange *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check Bound ClosedForm Primes.

Section Exist.
Variable m : mesh.
Hypothesis PM : forall a, a < length m -> prime_size (sz m a).

Definition plain (t : list dim) : layout := Layout m t [].
Definition even (t : list dim) : Prop := forall i, i < length t -> divides m (dim_at t i) /\ 0 < extent (dim_at t i).
(* well-formed and even *)
Definition fit (t : list dim) : Prop := wf m t /\ even t.

Lemma mesh_prime_ok : mesh_ok m = true.
Proof.
  unfold mesh_ok. apply forallb_forall. intros s Hs. apply (In_nth _ _ 1) in Hs as [a [Ha <-]].
  apply Nat.ltb_lt. destruct (PM a Ha). unfold sz in *. lia.
Qed.
Local Notation Hm := mesh_prime_ok.

Lemma plain_ok t : wf m t -> layout_ok (plain t) = true.
Proof. intros W. apply layout_ok_iff. split; [apply Hm|exact W]. Qed.

Lemma divides_intro d : Nat.divide (shard_count m d) (extent d) -> divides m d.
Proof.
  intros [q E]. unfold divides, tile_extent.
  rewrite (ceil_div_exact _ _ q); auto. apply mesh_ok_prodsz, Hm.
Qed.
Lemma divides_elim d : divides m d -> Nat.divide (shard_count m d) (extent d).
Proof. intros E. exists (tile_extent m d). exact E. Qed.

(* Even tiles: size times the used shards is the array. *)
Lemma size_extents t : even t -> size m t * prodsz m (used t) = prodl (map extent t).
Proof.
  unfold used, even, dim_at. induction t as [|d t IH]; intros E; auto. simpl. rewrite prodsz_app.
  rewrite <- IH by (intros i Hi; apply (E (S i)); simpl; lia).
  destruct (E 0 ltac:(simpl; lia)) as [D _]. simpl in D. rewrite D. unfold shard_count. lia.
Qed.
Lemma size_le t u : same_shape t u -> even t -> even u -> prodsz m (used t) <= prodsz m (used u) -> size m u <= size
  m t.
Proof.
  intros SH Et Eu L. pose proof (size_extents t Et) as H1. pose proof (size_extents u Eu) as H2.
  unfold same_shape in SH. rewrite SH in H1. rewrite <- H2 in H1.
  pose proof (mesh_ok_prodsz m (used t) Hm). pose proof (mesh_ok_prodsz m (used u) Hm).
  destruct (Nat.le_gt_cases (size m u) (size m t)); auto. exfalso. nia.
Qed.
Lemma size_eq t u : same_shape t u -> even t -> even u -> prodsz m (used t) = prodsz m (used u) -> size m t = size m u.
Proof.
  intros SH Et Eu E. apply Nat.le_antisymm; apply size_le; auto using same_shape_sym; lia.
Qed.
Lemma in_all_prodsz t u : (forall p, in_all m t p = in_all m u p) -> prodsz m (used t) = prodsz m (used u).
Proof.
  intros H. rewrite !prodsz_prodl. apply prodl_perm, (Permutation_count_occ Nat.eq_dec). exact H.
Qed.

(* steps, left out where they change nothing *)
Definition opt (k : kind) (t u : list dim) : list step :=
  if changes (plain t) (plain u) then [(k, plain u)] else [].

Lemma unchanged t u : same_shape t u -> changes (plain t) (plain u) = false -> t = u.
Proof.
  unfold changes, plain. intros SH H. apply negb_false_iff in H. rewrite !andb_true_iff in H. destruct H as [_ H].
    simpl in H.
  revert u SH H; induction t as [|d t IH]; destruct u as [|e u]; unfold same_shape; simpl; intros SH H; auto; try
    discriminate.
  injection SH as E1 E2. apply andb_true_iff in H as [H1 H2]. apply same_list_ok in H1.
  destruct d, e; simpl in *. f_equal; [congruence|]. apply IH; auto.
Qed.

(* The judge walks from L through p to t, with no tile above B and c elements certified. *)
Definition arrives (B : nat) (L : layout) (p : list step) (t : layout) (c : nat) : Prop :=
  forall n v, exists w, walk (Some B) t n L p v = Accept w /\ received_total w = received_total v + c.

Lemma arrives_here B t : arrives B t [] t 0.
Proof. intros n v. exists v. simpl. rewrite same_layout_refl. split; auto. Qed.
Lemma arrives_opt k t u B r tgt c : same_shape t u -> wf m u -> rule (plain t) k (plain u) = true -> size m u <= B ->
  arrives B (plain u) r tgt c ->
  arrives B (plain t) (opt k t u ++ r) tgt
    ((if changes (plain t) (plain u) then certified k (plain t) (plain u) else 0) + c).
Proof.
  intros SH W R LB A n v. unfold opt. destruct (changes (plain t) (plain u)) eqn:C.
  - simpl app. simpl walk. unfold type_step.
    rewrite (plain_ok u W), C, R, (proj2 (same_array_ok (plain t) (plain u)) SH). simpl andb. cbv iota.
    unfold tile_elements; simpl. rewrite (proj2 (Nat.leb_le _ _) LB).
    edestruct A as [w [H1 H2]]. exists w. split; [exact H1|]. rewrite H2. simpl. lia.
  - apply unchanged in C; auto. subst u. apply A.
Qed.
Lemma arrives_accept B s t p c : wf m s -> wf m t -> same_shape s t -> size m s <= B -> arrives B (plain s) p (plain
  t) c ->
  exists v, check_plan (Plan (plain s) (plain t) p) (Some B) = Accept v /\ received_total v = c.
Proof.
  intros Ws Wt SH LB A. unfold check_plan. cbn [source target steps].
  rewrite (plain_ok s Ws), (plain_ok t Wt), (proj2 (same_array_ok (plain s) (plain t)) SH).
  unfold tile_elements; simpl. rewrite (proj2 (Nat.leb_le _ _) LB). apply A.
Qed.

(* Refining: every dimension's list is extended. *)
Definition refines (t u : list dim) : Prop :=
  same_shape t u /\ forall i, i < length t -> exists B, atoms (dim_at u i) = atoms (dim_at t i) ++ B.

Lemma refines_refl t : refines t t.
Proof. split; [reflexivity|]. intros i _. exists []. rewrite app_nil_r; auto. Qed.
Lemma refines_trans t u w : refines t u -> refines u w -> refines t w.
Proof.
  intros [S1 R1] [S2 R2]. split. { unfold same_shape in *; congruence. }
  intros i Hi. destruct (R1 i Hi) as [B E1]. rewrite (same_shape_length _ _ S1) in Hi.
  destruct (R2 i Hi) as [C E2]. exists (B ++ C). rewrite E2, E1, app_assoc. auto.
Qed.
Lemma refines_splits t u : refines t u -> even t -> even u -> forall2b (splits m) t u = true.
Proof.
  intros [SH R] Et Eu. pose proof (same_shape_length _ _ SH) as HL. apply forall2b_at. split; auto.
  intros i Hi. destruct (R i Hi) as [B E]. apply splits_exactly_splits; [apply Hm|apply same_shape_at; auto|].
  apply even_splits with B; auto.
  - apply Hm.
  - apply same_shape_at; auto.
  - apply Et; auto.
  - apply Eu; lia.
Qed.
Lemma even_in t : even t -> forall d, In d t -> divides m d.
Proof. intros Ey d Hd. apply (In_nth _ _ d0) in Hd as [i [Hi <-]]. apply Ey; auto. Qed.
Lemma refines_comparable t u : refines t u -> even t -> even u -> comparable (plain u) (plain t) = true.
Proof.
  intros R Et Eu. destruct R as [SH R]. pose proof (same_shape_length _ _ SH) as HL.
  unfold comparable, same_mesh, same_unreduced. simpl. rewrite !(proj2 (same_list_ok _ _) eq_refl). simpl.
  apply forall2b_at. split; auto. intros i Hi. rewrite <- HL in Hi. destruct (R i Hi) as [B E].
  unfold nests_exactly. apply orb_true_iff. right. apply even_splits with B; auto.
  - apply Hm.
  - apply same_shape_at; auto.
  - apply Et; auto.
  - apply Eu; lia.
Qed.
Lemma refines_joins t u : refines t u -> even t -> even u -> forall2b (joins m) u t = true.
Proof.
  intros R Et Eu. pose proof (refines_splits t u R Et Eu) as H. destruct R as [SH _].
  rewrite forall2b_at in *. destruct H as [HL H]. split; auto. intros i Hi. apply H. lia.
Qed.

Lemma primes_in t i : wf m t -> Forall prime_size (sizes m (atoms (dim_at t i))).
Proof.
  intros [_ H]. apply Forall_forall. intros p Hp. apply in_map_iff in Hp as [a [<- Ha]].
  apply PM, H. eapply in_used; eauto.
Qed.

(* The factors that t lacks against s in dimension i divide its tile there: the dimension can be split by one more such atom. *)
Lemma lacking_divides t s i p : fit t -> fit s -> same_shape t s -> i < length t ->
  prime_size p -> in_dim m t i p < in_dim m s i p -> Nat.divide (shard_count m (dim_at t i) * p) (extent (dim_at t i)).
Proof.
  intros [Wt Et] [Ws Es] SH Hi Pp L. destruct (Et i Hi) as [Dt _].
  destruct (Es i ltac:(rewrite <- (same_shape_length _ _ SH); auto)) as [Ds _].
  assert (D : Nat.divide p (tile_extent m (dim_at t i))).
  { apply (deficit_divides p (sizes m (atoms (dim_at t i))) (sizes m (atoms (dim_at s i))) _ (tile_extent m (dim_at s
    i)));
      auto using primes_in.
    unfold divides, shard_count in Dt, Ds. rewrite !prodsz_prodl in *.
    rewrite <- Dt, <- Ds. apply same_shape_at; auto. }
  destruct D as [q D]. exists q. rewrite Dt, D. lia.
Qed.

(* Slice s by free atoms until it is sharded at least as much as t, prime by prime. *)
Lemma slice_to n s t : length m - length (used s) < n -> fit s -> fit t -> same_shape s t ->
  exists u, refines s u /\ fit u /\ forall p, in_all m u p = Nat.max (in_all m s p) (in_all m t p).
Proof.
  revert s; induction n; intros s HN Fs Ft SH; [lia|].
  pose proof (same_shape_length _ _ SH) as HL.
  destruct (existsb (fun a => in_all m s (sz m a) <? in_all m t (sz m a)) (seq 0 (length m))) eqn:EX.
  - apply existsb_exists in EX as [a0 [I0 L]]. apply Nat.ltb_lt in L. apply in_seq in I0. set (p := sz m a0) in *.
    assert (Pp : prime_size p) by (apply PM; lia).
    destruct (existsb (fun a => (sz m a =? p) && negb (existsb (Nat.eqb a) (used s))) (seq 0 (length m))) eqn:EA.
    2: { exfalso. assert (in_all m t p <= in_all m s p); [|lia]. apply all_used_most; [apply Ft|]. intros a Ha Ea.
         destruct (in_dec Nat.eq_dec a (used s)) as [I|I]; auto. exfalso.
         rewrite <- not_true_iff_false in EA. apply EA. apply existsb_exists. exists a.
         split. { apply in_seq; lia. } rewrite Ea, Nat.eqb_refl. simpl. apply negb_true_iff.
         rewrite <- not_true_iff_false, existsb_In. auto. }
    apply existsb_exists in EA as [a [Ia Ea]]. apply in_seq in Ia.
    apply andb_true_iff in Ea as [Ea Na]. apply Nat.eqb_eq in Ea.
    apply negb_true_iff in Na. rewrite <- not_true_iff_false, existsb_In in Na.
    destruct (existsb (fun i => in_dim m s i p <? in_dim m t i p) (seq 0 (length s))) eqn:EI.
    2: { exfalso. rewrite !in_all_sum in L. rewrite <- HL in L.
         apply (Nat.lt_irrefl (sumf (fun i => in_dim m s i p) (seq 0 (length s)))).
         eapply Nat.lt_le_trans; [exact L|]. apply sumf_le. intros i Hi.
         destruct (Nat.le_gt_cases (in_dim m t i p) (in_dim m s i p)); auto.
         exfalso. rewrite <- not_true_iff_false in EI. apply EI. apply existsb_exists. exists i; split; auto.
         apply Nat.ltb_lt; auto. }
    apply existsb_exists in EI as [i [Hi Li]]. apply in_seq in Hi. apply Nat.ltb_lt in Li.
    assert (Hi' : i < length s) by lia.
    pose proof (lacking_divides s t i p Fs Ft SH Hi' Pp Li) as Dv.
    set (s1 := upd i (Dim (extent (dim_at s i)) (atoms (dim_at s i) ++ [a])) s).
    assert (PU : Permutation (used s1) (a :: used s)).
    { apply Permutation_app_inv_l with (atoms (dim_at s i)).
      unfold s1. rewrite used_upd by auto. simpl. rewrite <- app_assoc. reflexivity. }
    assert (R1 : refines s s1).
    { split. { apply same_shape_upd; auto. } intros k Hk. unfold s1. destruct (Nat.eq_dec i k) as [<-|N].
      - rewrite dim_upd_eq by auto. exists [a]; auto.
      - rewrite dim_upd_neq by auto. exists []. rewrite app_nil_r; auto. }
    assert (F1 : fit s1).
    { destruct Fs as [[ND HA] Es]. split.
      - apply wf_perm with (Dim 0 [a] :: s). { apply Permutation_sym. exact PU. }
        split; simpl. { constructor; auto. } intros b [<-|Hb]; auto. lia.
      - intros k Hk. unfold s1 in *. rewrite upd_length in Hk. destruct (Nat.eq_dec i k) as [<-|N].
        + rewrite dim_upd_eq by auto. split; [|apply Es; auto]. apply divides_intro.
          unfold shard_count in *; simpl. rewrite prodsz_app; simpl. rewrite Ea, Nat.mul_1_r. exact Dv.
        + rewrite dim_upd_neq by auto. apply Es; auto. }
    assert (C1 : forall q, in_all m s1 q = in_all m s q + if Nat.eq_dec p q then 1 else 0).
    { intros q. unfold in_all. rewrite (cnt_perm q _ (sizes m (a :: used s))) by (apply Permutation_map; auto).
      simpl. rewrite Ea. destruct (Nat.eq_dec p q); lia. }
    destruct (IHn s1) as [u [R2 [Fu TU]]]; auto.
    + pose proof (Permutation_length PU) as PL. simpl in PL.
      assert (length (used s1) <= length m); [|lia].
      rewrite <- (seq_length (length m) 0). apply NoDup_incl_length; [apply F1|].
      intros d Hd. apply in_seq. pose proof (proj2 (proj1 F1) d Hd). lia.
    + destruct R1 as [S1 _]. unfold same_shape in *; congruence.
    + exists u. split; [eapply refines_trans; eauto|]. split; auto. intros q. rewrite TU, C1.
      destruct (Nat.eq_dec p q) as [<-|]; lia.
  - exists s. split; [apply refines_refl|]. split; auto. intros p.
    destruct (Nat.le_gt_cases (in_all m t p) (in_all m s p)); [lia|]. exfalso.
    assert (I : In p (sizes m (used t))) by (apply (count_occ_In Nat.eq_dec); unfold in_all in *; lia).
    apply in_map_iff in I as [a [Ea Ia]].
    rewrite <- not_true_iff_false in EX. apply EX. apply existsb_exists. exists a. split.
    + apply in_seq. pose proof (proj2 (proj1 Ft) a Ia). lia.
    + rewrite Ea. apply Nat.ltb_lt; auto.
Qed.

(* source and target refined to the same tile size *)
Lemma meet s t : fit s -> fit t -> same_shape s t ->
  exists u w, refines s u /\ refines t w /\ fit u /\ fit w /\ same_shape u w /\
    (forall p, in_all m u p = in_all m w p) /\ size m u = size m w /\ size m u <= size m s /\ size m w <= size m t.
Proof.
  intros Fs Ft SH.
  destruct (slice_to _ s t (Nat.lt_succ_diag_r _) Fs Ft SH) as [u [Ru [Fu Tu]]].
  destruct (slice_to _ t s (Nat.lt_succ_diag_r _) Ft Fs (same_shape_sym _ _ SH)) as [w [Rw [Fw Tw]]].
  assert (SUW : same_shape u w) by (destruct Ru, Rw; unfold same_shape in *; congruence).
  assert (T : forall p, in_all m u p = in_all m w p) by (intros p; rewrite Tu, Tw; lia).
  exists u, w. repeat (split; auto).
  - apply size_eq; auto; [apply Fu|apply Fw|apply in_all_prodsz; auto].
  - destruct (splits_min m s u Hm (refines_splits s u Ru (proj2 Fs) (proj2 Fu))) as [_ H]. exact H.
  - destruct (splits_min m t w Hm (refines_splits t w Rw (proj2 Ft) (proj2 Fw))) as [_ H]. exact H.
Qed.

Lemma rule_slice t u : refines t u -> fit t -> fit u -> rule (plain t) slice (plain u) = true.
Proof.
  intros R Ft Fu. simpl. unfold same_mesh, same_unreduced; simpl.
  rewrite !(proj2 (same_list_ok _ _) eq_refl). apply refines_splits; auto; [apply Ft|apply Fu].
Qed.
Lemma rule_gather t u : refines t u -> fit t -> fit u -> rule (plain u) all_gather (plain t) = true.
Proof.
  intros R Ft Fu. simpl. unfold same_mesh, same_unreduced; simpl.
  rewrite !(proj2 (same_list_ok _ _) eq_refl). apply refines_joins; auto; [apply Ft|apply Fu].
Qed.

(* The normal form: slice, exchange equal tiles, gather; no tile above the ends', and nobody receives more than its
   target tile in all. *)
Theorem three_stage s t : fit s -> fit t -> same_shape s t ->
  exists u w v,
    check_plan (Plan (plain s) (plain t) (opt slice s u ++ opt exchange u w ++ opt all_gather w t))
      (Some (Nat.max (size m s) (size m t))) = Accept v /\ received_total v <= size m t.
Proof.
  intros Fs Ft SH. destruct (meet s t Fs Ft SH) as [u [w [Ru [Rw [Fu [Fw [SUW [T [Z [Zu Zw]]]]]]]]]].
  set (B := Nat.max (size m s) (size m t)).
  pose proof (arrives_here B (plain t)) as A0.
  assert (BS : size m s <= B) by (unfold B; lia). assert (BT : size m t <= B) by (unfold B; lia).
  assert (BU : size m u <= B) by lia. assert (BW : size m w <= B) by lia.
  pose proof (arrives_opt all_gather w t B [] (plain t) _ (same_shape_sym _ _ (proj1 Rw)) (proj1 Ft)
    (rule_gather t w Rw Ft Fw) BT A0) as A1.
  assert (RX : rule (plain u) exchange (plain w) = true) by reflexivity.
  pose proof (arrives_opt exchange u w B _ (plain t) _ SUW (proj1 Fw) RX BW A1) as A2.
  pose proof (arrives_opt slice s u B _ (plain t) _ (proj1 Ru) (proj1 Fu) (rule_slice s u Ru Fs Fu) BU A2) as A3.
  rewrite app_nil_r in A3.
  destruct (arrives_accept B s t _ _ (proj1 Fs) (proj1 Ft) SH BS A3) as [v [H1 H2]].
  exists u, w, v. split; auto. rewrite H2.
  assert (C2 : certified exchange (plain u) (plain w) <= size m w).
  { apply foreign_elements_le; apply plain_ok; [apply Fu|apply Fw]. }
  assert (C3 : certified all_gather (plain w) (plain t) <= size m t - size m w).
  { simpl. unfold missing_elements. rewrite (refines_comparable t w Rw (proj2 Ft) (proj2 Fw)).
    unfold overlap, tile_elements; simpl.
    destruct (joins_min m w t Hm (refines_joins t w Rw (proj2 Ft) (proj2 Fw))) as [H _]. rewrite H. auto. }
  change (certified slice (plain s) (plain u)) with 0.
  destruct (changes (plain s) (plain u)), (changes (plain u) (plain w)), (changes (plain w) (plain t)); lia.
Qed.

Definition is_portable (s : step) : Prop := fst s = permute \/ fst s = all_to_all.

Lemma opt_portable k t u : k = permute \/ k = all_to_all -> Forall is_portable (opt k t u).
Proof. intros H. unfold opt. destruct (changes _ _); constructor; [exact H|constructor]. Qed.

Lemma rule_permute t u : same_shape t u ->
  (forall i, i < length t -> prodsz m (atoms (dim_at t i)) = prodsz m (atoms (dim_at u i))) ->
  rule (plain t) permute (plain u) = true.
Proof.
  intros SH H. unfold rule, same_mesh. simpl. rewrite (proj2 (same_list_ok _ _) eq_refl).
  unfold same_shards at 1, shard_count. simpl. apply forall2b_at. split; [apply same_shape_length; auto|].
  intros i Hi. apply Nat.eqb_eq. apply H; auto.
Qed.

(* the distance from u to w: the missing factors, over all dimensions and primes *)
Definition lack (w u : list dim) : nat :=
  sumf (fun ia => in_dim m w (fst ia) (sz m (snd ia)) - in_dim m u (fst ia) (sz m (snd ia)))
    (list_prod (seq 0 (length w)) (seq 0 (length m))).

(* Move one atom of size p from dimension j, which has too many, to dimension i, which lacks one: bring it to the minor
   end by a permute, then an all_to_all. *)
Lemma move_atom u w i j p : fit u -> fit w -> same_shape u w -> i < length u -> j < length u -> i <> j ->
  prime_size p -> in_dim m u i p < in_dim m w i p -> in_dim m w j p < in_dim m u j p ->
  exists t1 t2, fit t1 /\ fit t2 /\ same_shape u t1 /\ same_shape t1 t2 /\ size m t1 = size m u /\ size m t2 = size m
    u /\
    rule (plain u) permute (plain t1) = true /\ rule (plain t1) all_to_all (plain t2) = true /\
    (forall q, in_all m t2 q = in_all m u q) /\
    (forall q, in_dim m t2 i q = in_dim m u i q + if Nat.eq_dec p q then 1 else 0) /\
    (forall q, in_dim m u j q = in_dim m t2 j q + if Nat.eq_dec p q then 1 else 0) /\
    (forall k q, k <> i -> k <> j -> in_dim m t2 k q = in_dim m u k q).
Proof.
  intros Fu Fw SH Hi Hj Nij Pp Li Lj.
  assert (I : In p (sizes m (atoms (dim_at u j)))) by (apply (count_occ_In Nat.eq_dec); unfold in_dim in *; lia).
  apply in_map_iff in I as [a [Ea Ia]]. apply in_split in Ia as [l1 [l2 El]]. set (l := l1 ++ l2).
  assert (PA : Permutation (atoms (dim_at u j)) (l ++ [a])).
  { rewrite El. apply Permutation_sym. unfold l. rewrite <- Permutation_cons_append. apply Permutation_middle. }
  set (uj := upd j (Dim (extent (dim_at u j)) l) u).
  set (t1 := upd j (Dim (extent (dim_at u j)) (l ++ [a])) u).
  set (t2 := upd i (Dim (extent (dim_at u i)) (atoms (dim_at u i) ++ [a])) uj).
  assert (Lu : length uj = length u) by (unfold uj; apply upd_length).
  assert (L1 : length t1 = length u) by (unfold t1; apply upd_length).
  assert (L2 : length t2 = length u) by (unfold t2; rewrite upd_length; auto).
  assert (Ui : dim_at uj i = dim_at u i) by (unfold uj; apply dim_upd_neq; auto).
  assert (D1 : dim_at t1 j = Dim (extent (dim_at u j)) (l ++ [a])) by (apply dim_upd_eq; auto).
  assert (D1' : forall k, k <> j -> dim_at t1 k = dim_at u k) by (intros; unfold t1; apply dim_upd_neq; auto).
  assert (D2i : dim_at t2 i = Dim (extent (dim_at u i)) (atoms (dim_at u i) ++ [a])) by (apply dim_upd_eq; lia).
  assert (D2j : dim_at t2 j = Dim (extent (dim_at u j)) l).
  { unfold t2. rewrite dim_upd_neq by auto. apply dim_upd_eq; auto. }
  assert (D2k : forall k, k <> i -> k <> j -> dim_at t2 k = dim_at u k).
  { intros k K1 K2. unfold t2, uj. rewrite !dim_upd_neq by auto. auto. }
  assert (P1 : Permutation (used t1) (used u)).
  { apply Permutation_app_inv_l with (atoms (dim_at u j)). unfold t1. rewrite used_upd by auto. simpl. rewrite PA.
    auto. }
  assert (P2 : Permutation (used t2) (used u)).
  { transitivity (a :: used uj).
    - apply Permutation_app_inv_l with (atoms (dim_at uj i)). unfold t2. rewrite used_upd by lia.
      simpl. rewrite Ui, <- app_assoc. reflexivity.
    - apply Permutation_app_inv_l with l. rewrite <- Permutation_middle.
      pose proof (used_upd j (Dim (extent (dim_at u j)) l) u Hj) as U. fold uj in U. simpl in U. rewrite <- U.
      rewrite PA. rewrite (Permutation_app_comm l [a]). reflexivity. }
  assert (S1 : same_shape u t1).
  { apply same_shape_intro; auto. intros k Hk. destruct (Nat.eq_dec k j) as [->|N]; [rewrite D1|rewrite D1']; auto. }
  assert (S2 : same_shape u t2).
  { apply same_shape_intro; auto. intros k Hk. destruct (Nat.eq_dec k i) as [->|N]; [rewrite D2i; auto|].
    destruct (Nat.eq_dec k j) as [->|N']; [rewrite D2j|rewrite D2k]; auto. }
  assert (SC : shard_count m (dim_at t1 j) = shard_count m (dim_at u j)).
  { rewrite D1. unfold shard_count; simpl. symmetry. apply prodsz_perm; auto. }
  assert (F1 : fit t1).
  { split. { apply wf_perm with u; [apply Permutation_sym; auto|apply Fu]. }
    intros k Hk. rewrite L1 in Hk. destruct (Nat.eq_dec k j) as [->|N].
    - destruct (proj2 Fu j Hj) as [A B]. split; [|rewrite D1; auto]. apply divides_intro. rewrite SC, D1. simpl.
      apply divides_elim; auto.
    - rewrite D1' by auto. apply Fu; auto. }
  assert (F2 : fit t2).
  { split. { apply wf_perm with u; [apply Permutation_sym; auto|apply Fu]. }
    intros k Hk. rewrite L2 in Hk. destruct (Nat.eq_dec k i) as [->|N]; [|destruct (Nat.eq_dec k j) as [->|N']].
    - rewrite D2i. split; [|apply Fu; auto]. apply divides_intro. unfold shard_count; simpl.
      rewrite prodsz_app; simpl. rewrite Ea, Nat.mul_1_r. apply (lacking_divides u w i p); auto.
    - rewrite D2j. destruct (proj2 Fu j Hj) as [A B]. split; auto. apply divides_intro.
      apply divides_elim in A. unfold shard_count in *; simpl.
      rewrite (prodsz_perm m _ _ PA), prodsz_app in A. destruct A as [q A]. exists (q * prodsz m [a]). simpl. rewrite
        A. simpl. lia.
    - rewrite D2k by auto. apply Fu; auto. }
  assert (Z1 : size m t1 = size m u).
  { apply size_eq; auto using same_shape_sym; [apply F1|apply Fu|apply prodsz_perm; auto]. }
  assert (Z2 : size m t2 = size m u).
  { apply size_eq; auto using same_shape_sym; [apply F2|apply Fu|apply prodsz_perm; auto]. }
  assert (S12 : same_shape t1 t2) by (unfold same_shape in *; congruence).
  exists t1, t2. split; [auto|]. split; [auto|]. split; [auto|]. split; [auto|]. split; [auto|]. split; [auto|].
  split; [|split; [|split; [|split; [|split]]]].
  - apply rule_permute; auto. intros k Hk. destruct (Nat.eq_dec k j) as [->|N].
    + symmetry. exact SC.
    + rewrite D1' by auto. auto.
  - unfold rule, same_mesh, same_unreduced. simpl. rewrite !(proj2 (same_list_ok _ _) eq_refl). simpl.
    rewrite !andb_true_iff. split.
    + apply forall2b_at. split; [lia|]. intros k Hk. rewrite L1 in Hk. unfold nests. apply orb_true_iff.
      assert (E1 : divides m (dim_at t1 k)) by (apply F1; lia).
      assert (E2 : divides m (dim_at t2 k)) by (apply F2; lia).
      pose proof (same_shape_at _ _ k S12) as EX.
      destruct (Nat.eq_dec k j) as [->|N].
      * right. apply splits_exactly_splits; auto using Hm. apply even_splits with [a]; auto using Hm.
        rewrite D1, D2j. reflexivity.
      * left. apply splits_exactly_splits; auto using Hm. destruct (Nat.eq_dec k i) as [->|N'].
        -- apply even_splits with [a]; auto using Hm. rewrite D2i, D1' by auto. reflexivity.
        -- apply even_splits with []; auto using Hm. rewrite D2k, D1' by auto. rewrite app_nil_r. reflexivity.
    + unfold same_set. rewrite andb_true_iff, !subset_ok.
      split; intros b Hb; eapply Permutation_in; try exact Hb.
      * rewrite P1. apply Permutation_sym; auto.
      * rewrite P2. apply Permutation_sym; auto.
  - intros q. unfold in_all. apply cnt_perm, Permutation_map; auto.
  - intros q. unfold in_dim. rewrite D2i. simpl. unfold sizes. rewrite map_app, cnt_app. simpl. rewrite Ea. reflexivity.
  - intros q. unfold in_dim. rewrite D2j. simpl.
    rewrite (cnt_perm q _ (sizes m (l ++ [a]))) by (apply Permutation_map; auto).
    unfold sizes. rewrite map_app, cnt_app. simpl. rewrite Ea. reflexivity.
  - intros k q K1 K2. unfold in_dim. rewrite D2k; auto.
Qed.

Lemma middle n u w B tgt r c : lack w u < n -> fit u -> fit w -> same_shape u w ->
  (forall p, in_all m u p = in_all m w p) -> size m u = size m w -> size m u <= B -> arrives B (plain w) r tgt c ->
  exists p c', Forall is_portable p /\ arrives B (plain u) (p ++ r) tgt c'.
Proof.
  revert u; induction n; intros u HN Fu Fw SH T Z LB A; [lia|].
  pose proof (same_shape_length _ _ SH) as HL.
  destruct (existsb (fun ia => in_dim m u (fst ia) (sz m (snd ia)) <? in_dim m w (fst ia) (sz m (snd ia)))
             (list_prod (seq 0 (length w)) (seq 0 (length m)))) eqn:EX.
  - apply existsb_exists in EX as [[i a] [I L]]. simpl in L. apply Nat.ltb_lt in L.
    pose proof I as I'. apply in_prod_iff in I' as [I1 I2]. apply in_seq in I1, I2. set (p := sz m a) in *.
    assert (Pp : prime_size p) by (apply PM; lia).
    (* some other dimension has too many *)
    destruct (existsb (fun j => in_dim m w j p <? in_dim m u j p) (seq 0 (length u))) eqn:EJ.
    2: { exfalso. pose proof (T p) as Tp. rewrite !in_all_sum, <- HL in Tp.
         assert (sumf (fun i => in_dim m u i p) (seq 0 (length u)) < sumf (fun i => in_dim m w i p) (seq 0 (length
           u))); [|lia].
         apply sumf_lt with i; auto; [|apply in_seq; lia]. intros j Hj.
         destruct (Nat.le_gt_cases (in_dim m u j p) (in_dim m w j p)); auto. exfalso.
         rewrite <- not_true_iff_false in EJ. apply EJ. apply existsb_exists. exists j; split; auto. apply
           Nat.ltb_lt; auto. }
    apply existsb_exists in EJ as [j [Ij Lj]]. apply in_seq in Ij. apply Nat.ltb_lt in Lj.
    assert (Nij : i <> j) by (intros ->; lia).
    assert (Hi : i < length u) by lia. assert (Hj : j < length u) by lia.
    destruct (move_atom u w i j p Fu Fw SH Hi Hj Nij Pp L Lj)
      as [t1 [t2 [F1 [F2 [S1 [S12 [Z1 [Z2 [R1 [R2 [TA [Ti [Tj Tk]]]]]]]]]]]]].
    assert (S2 : same_shape t2 w) by (unfold same_shape in *; congruence).
    assert (HN' : lack w t2 < n).
    { assert (lack w t2 < lack w u); [|lia]. unfold lack. apply sumf_lt with (i, a); auto.
      - intros [k b] Hb. simpl. destruct (Nat.eq_dec k i) as [->|N1]; [rewrite Ti; lia|].
        destruct (Nat.eq_dec k j) as [->|N2].
        + specialize (Tj (sz m b)). destruct (Nat.eq_dec p (sz m b)) as [E|E]; [rewrite <- E in *|]; lia.
        + rewrite Tk; auto.
      - simpl. fold p. rewrite Ti. destruct (Nat.eq_dec p p); [lia|congruence]. }
    assert (T2 : forall q, in_all m t2 q = in_all m w q) by (intros q; rewrite TA; auto).
    assert (B2 : size m t2 <= B) by lia. assert (B1 : size m t1 <= B) by lia.
    destruct (IHn t2 HN' F2 Fw S2 T2 ltac:(lia) B2 A) as [p' [c' [FP A']]].
    pose proof (arrives_opt all_to_all t1 t2 B _ tgt _ S12 (proj1 F2) R2 B2 A') as A1.
    pose proof (arrives_opt permute u t1 B _ tgt _ S1 (proj1 F1) R1 B1 A1) as A0.
    rewrite !app_assoc in A0. eexists _, _. split; [|exact A0].
    apply Forall_app; split; [apply Forall_app; split|exact FP]; apply opt_portable; auto.
  - (* nothing lacks: the tiles agree, one permute is left *)
    assert (LE : forall i p, i < length u -> in_dim m w i p <= in_dim m u i p).
    { intros i p Hi. destruct (Nat.le_gt_cases (in_dim m w i p) (in_dim m u i p)); auto. exfalso.
      assert (I : In p (sizes m (atoms (dim_at w i)))) by (apply (count_occ_In Nat.eq_dec); unfold in_dim in *; lia).
      apply in_map_iff in I as [a [Ea Ia]].
      rewrite <- not_true_iff_false in EX. apply EX. apply existsb_exists. exists (i, a). split.
      - apply in_prod_iff. split; apply in_seq; [lia|]. pose proof (proj2 (proj1 Fw) a (in_used _ _ _ Ia)). lia.
      - simpl. rewrite Ea. apply Nat.ltb_lt; auto. }
    assert (EQ : forall i p, i < length u -> in_dim m u i p = in_dim m w i p).
    { intros i p Hi. specialize (LE i p Hi) as L0. destruct (Nat.eq_dec (in_dim m u i p) (in_dim m w i p)); auto.
      exfalso.
      pose proof (T p) as Tp. rewrite !in_all_sum, <- HL in Tp.
      assert (sumf (fun i => in_dim m w i p) (seq 0 (length u)) < sumf (fun i => in_dim m u i p) (seq 0 (length u)));
        [|lia].
      apply sumf_lt with i; [|apply in_seq; lia|lia]. intros j Hj. apply in_seq in Hj. apply LE; lia. }
    assert (R : rule (plain u) permute (plain w) = true).
    { apply rule_permute; auto. intros i Hi. rewrite !prodsz_prodl. apply prodl_perm.
      apply (Permutation_count_occ Nat.eq_dec). intros p. apply EQ; auto. }
    assert (BW : size m w <= B) by lia.
    eexists _, _. split; [|apply (arrives_opt permute u w B r tgt c SH (proj1 Fw) R BW A)].
    apply opt_portable; auto.
Qed.

(* A plan with no exchange: slice, then permutes and all_to_alls of equal tiles, then gather, within the ends' memory. *)
Theorem memory_bounded_existence s t : fit s -> fit t -> same_shape s t ->
  exists u w p v, Forall is_portable p /\
    check_plan (Plan (plain s) (plain t) (opt slice s u ++ p ++ opt all_gather w t))
      (Some (Nat.max (size m s) (size m t))) = Accept v.
Proof.
  intros Fs Ft SH. destruct (meet s t Fs Ft SH) as [u [w [Ru [Rw [Fu [Fw [SUW [T [Z [Zu Zw]]]]]]]]]].
  set (B := Nat.max (size m s) (size m t)).
  pose proof (arrives_here B (plain t)) as A0.
  assert (BS : size m s <= B) by (unfold B; lia). assert (BT : size m t <= B) by (unfold B; lia).
  assert (BU : size m u <= B) by lia.
  pose proof (arrives_opt all_gather w t B [] (plain t) _ (same_shape_sym _ _ (proj1 Rw)) (proj1 Ft)
    (rule_gather t w Rw Ft Fw) BT A0) as A1.
  destruct (middle _ u w B (plain t) _ _ (Nat.lt_succ_diag_r _) Fu Fw SUW T Z BU A1) as [p [c [FP A2]]].
  pose proof (arrives_opt slice s u B _ (plain t) _ (proj1 Ru) (proj1 Fu) (rule_slice s u Ru Fs Fu) BU A2) as A3.
  rewrite app_nil_r in A3.
  destruct (arrives_accept B s t _ _ (proj1 Fs) (proj1 Ft) SH BS A3) as [v [H1 H2]].
  exists u, w, p, v. auto.
Qed.

(* Within a factor of two of the best: if anything must be received at all, the three-stage plan certifies at most twice
   what some device receives in any protocol. *)
Theorem three_stage_2approx s t : fit s -> fit t -> same_shape s t ->
  (exists x, valid m x /\ 0 < received exchange (plain s) (plain t) x) ->
  exists u w v x,
    check_plan (Plan (plain s) (plain t) (opt slice s u ++ opt exchange u w ++ opt all_gather w t))
      (Some (Nat.max (size m s) (size m t))) = Accept v /\
    valid m x /\ received_total v <= 2 * received exchange (plain s) (plain t) x.
Proof.
  intros Fs Ft SH HX. destruct (three_stage s t Fs Ft SH) as [u [w [v [H1 H2]]]].
  destruct (optimum_ge_half (plain s) (plain t)) as [x [Hx R]]; auto using plain_ok.
  - apply plain_ok, Fs.
  - apply plain_ok, Ft.
  - apply same_mesh_ok; auto.
  - intros a Ha. destruct (PM a Ha). simpl in *. lia.
  - apply even_in, Fs.
  - apply even_in, Ft.
  - exists u, w, v, x. split; auto. split; auto. unfold tile_elements in R; simpl in R. lia.
Qed.
End Exist.
