(* How many permutes suffice.  If all atoms of the mesh have one prime size (powers of two, say): two.
   two_permutes   slice, permute, one wide all_to_all, permute, all_gather; no tile above the ends' *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check Bound ClosedForm Primes Exist.

(* the atoms of A dealt out, n to each dimension *)
Fixpoint deal (ns : list nat) (A : list nat) : list (list nat) :=
  match ns with [] => [] | n :: ns => firstn n A :: deal ns (skipn n A) end.
Definition total_of (ns : list nat) : nat := fold_right Nat.add 0 ns.

Lemma deal_concat ns A : total_of ns <= length A -> concat (deal ns A) = firstn (total_of ns) A.
Proof.
  revert A; induction ns as [|n ns IH]; simpl; intros A H; auto.
  rewrite IH by (rewrite skipn_length; lia). rewrite <- (firstn_skipn n A) at 3.
  rewrite firstn_app, firstn_length, Nat.min_l by lia. replace (n + total_of ns - n) with (total_of ns) by lia.
  f_equal. rewrite firstn_firstn, Nat.min_r by lia. auto.
Qed.
Lemma deal_lengths ns A : total_of ns <= length A -> map (@length nat) (deal ns A) = ns.
Proof.
  revert A; induction ns as [|n ns IH]; simpl; intros A H; auto.
  rewrite firstn_length, Nat.min_l, IH by (rewrite ?skipn_length; lia). auto.
Qed.

(* dimensions of t with the lists K_i ++ X_i *)
Fixpoint dealt (t : list dim) (K X : list (list nat)) : list dim :=
  match t, K, X with d :: t, k :: K, x :: X => Dim (extent d) (k ++ x) :: dealt t K X | _, _, _ => [] end.

Lemma dealt_shape t K X : length K = length t -> length X = length t -> same_shape t (dealt t K X).
Proof.
  unfold same_shape. revert K X; induction t as [|d t IH]; destruct K, X; simpl; intros H1 H2; auto; try lia.
  f_equal. apply IH; lia.
Qed.
Lemma dealt_used t K X : length K = length t -> length X = length t ->
  Permutation (used (dealt t K X)) (concat K ++ concat X).
Proof.
  unfold used. revert K X; induction t as [|d t IH]; destruct K as [|k K], X as [|x X]; simpl; intros H1 H2; auto;
    try lia.
  rewrite (IH K X) by lia. rewrite <- !app_assoc. apply Permutation_app_head. apply Permutation_app_swap_app.
Qed.

Section Permutes.
Variables (m : mesh) (p : nat).
Hypothesis Pp : prime_size p.
Hypothesis PM : forall a, a < length m -> sz m a = p.

Lemma PM' : forall a, a < length m -> prime_size (sz m a).
Proof. intros a Ha. rewrite PM; auto. Qed.

Lemma prodsz_pow l : (forall a, In a l -> a < length m) -> prodsz m l = p ^ length l.
Proof. induction l; simpl; intros H; auto. Qed.

Definition counts_of (t : list dim) : list nat := map (fun d => length (atoms d)) t.
Lemma counts_total t : total_of (counts_of t) = length (used t).
Proof. unfold used, counts_of. induction t; simpl; auto. rewrite app_length, <- IHt. auto. Qed.

Fixpoint minus2 (a b : list nat) : list nat := match a, b with x :: a, y :: b => (x - y) :: minus2 a b | _, _ => [] end.
Fixpoint min2 (a b : list nat) : list nat := match a, b with x :: a, y :: b => Nat.min x y :: min2 a b | _, _ => [] end.
Lemma min2_total a b : length a = length b -> total_of (min2 a b) + total_of (minus2 a b) = total_of a.
Proof. revert b; induction a; destruct b; simpl; intros H; try lia. specialize (IHa b ltac:(lia)). lia. Qed.
Lemma min2_comm a b : min2 a b = min2 b a.
Proof. revert b; induction a; destruct b; simpl; auto. rewrite IHa, Nat.min_comm. auto. Qed.
Lemma min2_length a b : length a = length b -> length (min2 a b) = length a.
Proof. revert b; induction a; destruct b; simpl; intros H; try lia. rewrite IHa; lia. Qed.
Lemma minus2_length a b : length a = length b -> length (minus2 a b) = length a.
Proof. revert b; induction a; destruct b; simpl; intros H; try lia. rewrite IHa; lia. Qed.
Lemma deal_length ns A : length (deal ns A) = length ns.
Proof. revert A; induction ns; simpl; auto. Qed.

(* a dealt layout has the shard counts that were dealt *)
Lemma dealt_shards t u ks xs K X : same_shape t u ->
  map (@length nat) K = ks -> map (@length nat) X = xs -> ks = min2 (counts_of t) (counts_of u) ->
  xs = minus2 (counts_of t) (counts_of u) ->
  (forall a, In a (concat K) -> a < length m) -> (forall a, In a (concat X) -> a < length m) ->
  (forall a, In a (used t) -> a < length m) ->
  forall i, i < length t -> prodsz m (atoms (dim_at t i)) = prodsz m (atoms (dim_at (dealt t K X) i)).
Proof.
  unfold same_shape, dim_at. intros SH <- <-. revert u K X SH.
  induction t as [|d t IH]; destruct u as [|e u], K as [|k K], X as [|x X]; simpl; intros SH EK EX HK HX HT i Hi;
    try discriminate; try lia.
  injection SH as S1 S2. injection EK as K1 K2. injection EX as X1 X2. destruct i as [|i].
  - simpl. rewrite !prodsz_pow.
    + f_equal. rewrite app_length. lia.
    + intros a Ha. apply in_app_iff in Ha as [Ha|Ha]; [apply HK|apply HX]; apply in_or_app; auto.
    + intros a Ha. apply HT. unfold used. simpl. apply in_or_app; auto.
  - simpl. apply (IH u); auto; try lia.
    + intros a Ha. apply HK, in_or_app; auto.
    + intros a Ha. apply HX, in_or_app; auto.
    + intros a Ha. apply HT. unfold used in *. simpl. apply in_or_app; auto.
Qed.

(* in every dimension at most one of the two extra lists is not empty *)
Lemma dealt_prefix t u K X Y : length t = length u ->
  map (@length nat) K = min2 (counts_of t) (counts_of u) -> map (@length nat) X = minus2 (counts_of t) (counts_of u) ->
  map (@length nat) Y = minus2 (counts_of u) (counts_of t) ->
  forall i, i < length t ->
    (exists B, atoms (dim_at (dealt t K X) i) = atoms (dim_at (dealt u K Y) i) ++ B) \/
    (exists B, atoms (dim_at (dealt u K Y) i) = atoms (dim_at (dealt t K X) i) ++ B).
Proof.
  unfold dim_at. revert u K X Y.
  induction t as [|d t IH]; destruct u as [|e u], K as [|k K], X as [|x X], Y as [|y Y];
    simpl; intros HL EK EX EY i Hi; try discriminate; try lia.
  injection EK as K1 K2. injection EX as X1 X2. injection EY as Y1 Y2. destruct i as [|i].
  - simpl. destruct (Nat.le_gt_cases (length (atoms d)) (length (atoms e))) as [C|C].
    + right. destruct x; [|simpl in X1; lia]. exists y. rewrite app_nil_r. auto.
    + left. destruct y; [|simpl in Y1; lia]. exists x. rewrite app_nil_r. auto.
  - simpl. apply IH; auto; lia.
Qed.

Lemma cnt_one l : (forall a, In a l -> a < length m) -> count_occ Nat.eq_dec (sizes m l) p = length l.
Proof.
  induction l; simpl; intros H; auto. rewrite PM by auto. destruct (Nat.eq_dec p p); [|congruence].
  rewrite IHl; auto.
Qed.

Lemma fit_like t u : fit m t -> wf m u -> same_shape t u ->
  (forall i, i < length t -> prodsz m (atoms (dim_at t i)) = prodsz m (atoms (dim_at u i))) -> fit m u.
Proof.
  intros [Wt Et] Wu SH H. split; auto. pose proof (same_shape_length _ _ SH) as HL. intros i Hi. rewrite <- HL in Hi.
  pose proof (same_shape_at _ _ i SH) as EX. destruct (Et i Hi) as [D P]. split; [|lia].
  unfold divides, tile_extent, shard_count in *. rewrite <- EX, <- (H i Hi). exact D.
Qed.

(* Two permutes and one all_to_all take any layout to any other of the same tile size. *)
Theorem two_permutes s t : fit m s -> fit m t -> same_shape s t ->
  exists u u' w' w v,
    check_plan (Plan (plain m s) (plain m t)
      (opt m slice s u ++ opt m permute u u' ++ opt m all_to_all u' w' ++ opt m permute w' w ++ opt m all_gather w t))
      (Some (Nat.max (size m s) (size m t))) = Accept v.
Proof.
  intros Fs Ft SH.
  destruct (meet m PM' s t Fs Ft SH) as [u [w [Ru [Rw [Fu [Fw [SUW [T [Z [Zu Zw]]]]]]]]]].
  set (A := used u). pose proof (proj2 (proj1 Fu)) as RU. pose proof (proj2 (proj1 Fw)) as RW.
  assert (LA : length (used w) = length A).
  { pose proof (T p) as Tp. unfold in_all in Tp. rewrite !cnt_one in Tp; auto. }
  set (cu := counts_of u). set (cw := counts_of w).
  pose proof (same_shape_length _ _ SUW) as HL.
  assert (LC : length cu = length cw) by (unfold cu, cw, counts_of; rewrite !map_length; auto).
  set (K := deal (min2 cu cw) A). set (R := skipn (total_of (min2 cu cw)) A).
  set (X := deal (minus2 cu cw) R). set (Y := deal (minus2 cw cu) R).
  pose proof (min2_total cu cw LC) as M1. pose proof (min2_total cw cu (eq_sym LC)) as M2.
  rewrite (min2_comm cw cu) in M2.
  assert (TU : total_of cu = length A) by apply counts_total.
  assert (TW : total_of cw = length A) by (rewrite <- LA; apply counts_total).
  assert (LR : length R = length A - total_of (min2 cu cw)) by apply skipn_length.
  assert (KL : map (@length nat) K = min2 cu cw) by (apply deal_lengths; lia).
  assert (XL : map (@length nat) X = minus2 cu cw) by (apply deal_lengths; lia).
  assert (YL : map (@length nat) Y = minus2 cw cu) by (apply deal_lengths; lia).
  assert (KC : concat K = firstn (total_of (min2 cu cw)) A) by (apply deal_concat; lia).
  assert (XC : concat X = R) by (unfold X; rewrite deal_concat by lia; apply firstn_all2; lia).
  assert (YC : concat Y = R) by (unfold Y; rewrite deal_concat by lia; apply firstn_all2; lia).
  assert (NU : length u = length cu) by (unfold cu, counts_of; rewrite map_length; auto).
  assert (NK : length K = length u) by (unfold K; rewrite deal_length, min2_length; lia).
  assert (NX : length X = length u) by (unfold X; rewrite deal_length, minus2_length; lia).
  assert (NY : length Y = length u) by (unfold Y; rewrite deal_length, minus2_length; lia).
  set (u' := dealt u K X). set (w' := dealt w K Y).
  assert (PU : Permutation (used u') A).
  { unfold u'. rewrite dealt_used by lia. rewrite KC, XC. unfold R. rewrite firstn_skipn. auto. }
  assert (PW : Permutation (used w') A).
  { unfold w'. rewrite dealt_used by lia. rewrite KC, YC. unfold R. rewrite firstn_skipn. auto. }
  assert (IA : forall a, In a A -> a < length m) by exact RU.
  assert (IK : forall a, In a (concat K) -> a < length m).
  { intros a Ha. apply IA. rewrite <- (firstn_skipn (total_of (min2 cu cw)) A). rewrite KC in Ha. apply in_or_app;
    auto. }
  assert (IR : forall a, In a R -> a < length m).
  { intros a Ha. apply IA. rewrite <- (firstn_skipn (total_of (min2 cu cw)) A). apply in_or_app; auto. }
  assert (SU : same_shape u u') by (apply dealt_shape; lia).
  assert (SW : same_shape w w') by (apply dealt_shape; lia).
  assert (HU : forall i, i < length u -> prodsz m (atoms (dim_at u i)) = prodsz m (atoms (dim_at u' i))).
  { apply (dealt_shards u w _ _ K X SUW KL XL); auto. rewrite XC. auto. }
  assert (HW : forall i, i < length w -> prodsz m (atoms (dim_at w i)) = prodsz m (atoms (dim_at w' i))).
  { apply (dealt_shards w u _ _ K Y (same_shape_sym _ _ SUW) KL YL); auto.
    - unfold cu, cw. apply min2_comm.
    - rewrite YC. auto. }
  assert (Fu' : fit m u').
  { apply (fit_like u); auto. apply wf_perm with u; [apply Permutation_sym; auto|apply Fu]. }
  assert (Fw' : fit m w').
  { apply (fit_like w); auto. apply wf_perm with u; [apply Permutation_sym; auto|apply Fu]. }
  assert (SUW' : same_shape u' w') by (unfold same_shape in *; congruence).
  assert (ZU : size m u' = size m u).
  { apply (size_eq m PM'); auto using same_shape_sym; [apply Fu'|apply Fu|apply prodsz_perm; auto]. }
  assert (ZW : size m w' = size m u').
  { apply (size_eq m PM'); auto using same_shape_sym; [apply Fw'|apply Fu'|].
    apply prodsz_perm. rewrite PW, PU. auto. }
  set (B := Nat.max (size m s) (size m t)).
  assert (R1 : rule (plain m u) permute (plain m u') = true) by (apply rule_permute; auto).
  assert (R3 : rule (plain m w') permute (plain m w) = true).
  { apply rule_permute; auto using same_shape_sym. intros i Hi. symmetry. apply HW.
    rewrite (same_shape_length _ _ SW). auto. }
  assert (R2 : rule (plain m u') all_to_all (plain m w') = true).
  { unfold rule, same_mesh, same_unreduced. simpl. rewrite !(proj2 (same_list_ok _ _) eq_refl). simpl.
    rewrite andb_true_iff. split.
    - apply forall2b_at. split; [apply same_shape_length; auto|]. intros i Hi.
      assert (D1 : divides m (dim_at u' i)) by (apply Fu'; auto).
      assert (D2 : divides m (dim_at w' i)).
      { apply Fw'. rewrite <- (same_shape_length _ _ SUW'). auto. }
      pose proof (same_shape_at _ _ i SUW') as EX. pose proof (mesh_prime_ok m PM') as Hm.
      unfold nests. apply orb_true_iff.
      rewrite <- (same_shape_length _ _ SU) in Hi.
      destruct (dealt_prefix u w K X Y HL KL XL YL i Hi) as [[C E]|[C E]].
      + right. apply splits_exactly_splits; auto. apply even_splits with C; auto.
      + left. apply splits_exactly_splits; auto. apply even_splits with C; auto.
    - unfold same_set. rewrite andb_true_iff, !subset_ok.
      split; intros b Hb; eapply Permutation_in; try exact Hb.
      + rewrite PU. apply Permutation_sym; auto.
      + rewrite PW. apply Permutation_sym; auto. }
  assert (BS : size m s <= B) by (unfold B; lia). assert (BT : size m t <= B) by (unfold B; lia).
  assert (BU : size m u <= B) by lia. assert (BU' : size m u' <= B) by lia. assert (BW' : size m w' <= B) by lia.
  assert (BW : size m w <= B) by lia.
  pose proof (arrives_here B (plain m t)) as A0.
  pose proof (arrives_opt m PM' all_gather w t B [] (plain m t) _ (same_shape_sym _ _ (proj1 Rw)) (proj1 Ft)
    (rule_gather m PM' t w Rw Ft Fw) BT A0) as A1.
  pose proof (arrives_opt m PM' permute w' w B _ (plain m t) _ (same_shape_sym _ _ SW) (proj1 Fw) R3 BW A1) as A2.
  pose proof (arrives_opt m PM' all_to_all u' w' B _ (plain m t) _ SUW' (proj1 Fw') R2 BW' A2) as A3.
  pose proof (arrives_opt m PM' permute u u' B _ (plain m t) _ SU (proj1 Fu') R1 BU' A3) as A4.
  pose proof (arrives_opt m PM' slice s u B _ (plain m t) _ (proj1 Ru) (proj1 Fu) (rule_slice m PM' s u Ru Fs Fu) BU
    A4) as A5.
  rewrite app_nil_r in A5.
  destruct (arrives_accept m PM' B s t _ _ (proj1 Fs) (proj1 Ft) SH BS A5) as [v [H1 H2]].
  exists u, u', w', w, v. exact H1.
Qed.
End Permutes.
