(* Counting prime factors: the missing factors of a dimension divide its tile. *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Received.

Definition prime_size (p : nat) : Prop := 1 < p /\ forall d, Nat.divide d p -> d = 1 \/ d = p.
Definition prodl (l : list nat) := fold_right Nat.mul 1 l.
Notation cnt p l := (count_occ Nat.eq_dec l p).
Definition sizes (m : mesh) (l : list nat) := map (sz m) l.

Lemma prodsz_prodl m l : prodsz m l = prodl (sizes m l).
Proof. induction l; simpl; auto. Qed.
Lemma prodl_app a b : prodl (a ++ b) = prodl a * prodl b.
Proof. induction a; simpl; rewrite ?IHa; lia. Qed.
Lemma prodl_perm a b : Permutation a b -> prodl a = prodl b.
Proof. induction 1; simpl; lia. Qed.
Lemma cnt_app p (a b : list nat) : cnt p (a ++ b) = cnt p a + cnt p b.
Proof. apply count_occ_app. Qed.
Lemma cnt_perm p (a b : list nat) : Permutation a b -> cnt p a = cnt p b.
Proof. intros H. apply (Permutation_count_occ Nat.eq_dec); auto. Qed.

Lemma euclid p a b : prime_size p -> Nat.divide p (a * b) -> Nat.divide p a \/ Nat.divide p b.
Proof.
  intros [P1 P2] H. destruct (P2 (Nat.gcd p a) (Nat.gcd_divide_l p a)) as [E|E].
  - right. eapply Nat.gauss; eauto.
  - left. rewrite <- E. apply Nat.gcd_divide_r.
Qed.
Lemma prodl_in p l : In p l -> Nat.divide p (prodl l).
Proof.
  induction l; simpl; intros H; [tauto|]. destruct H as [->|H].
  - apply Nat.divide_factor_l.
  - apply Nat.divide_mul_r; auto.
Qed.

(* A prime that one factorisation of c * prod A = d * prod B has more often in B than in A divides c. *)
Lemma deficit_divides p A B c d : prime_size p -> Forall prime_size A -> cnt p A < cnt p B ->
  c * prodl A = d * prodl B -> Nat.divide p c.
Proof.
  intros Pp. revert B c d; induction A as [|a A IH]; intros B c d FA H E; simpl in *.
  - apply (count_occ_In Nat.eq_dec), prodl_in in H.
    rewrite Nat.mul_1_r in E. rewrite E. apply Nat.divide_mul_r; auto.
  - inversion FA as [|? ? Pa FA']; subst.
    destruct (Nat.eq_dec a p) as [->|N].
    + assert (I : In p B) by (apply (count_occ_In Nat.eq_dec); lia).
      apply in_split in I as [B1 [B2 ->]].
      rewrite cnt_app in H. rewrite prodl_app in E. simpl in H, E.
      destruct (Nat.eq_dec p p) as [_|]; [|congruence].
      apply (IH (B1 ++ B2) c d); auto. { rewrite cnt_app; lia. }
      rewrite prodl_app. destruct Pp as [P1 _].
      apply (Nat.mul_cancel_l _ _ p); [lia|]. rewrite Nat.mul_comm with (n := p).
      nia.
    + assert (X : Nat.divide p (c * a)).
      { apply (IH B (c * a) d); auto. rewrite <- E. lia. }
      apply euclid in X as [X|X]; auto.
      destruct Pa as [_ Pa], Pp as [P1 _]. apply Pa in X. lia.
Qed.

Lemma sumf_lt {A} (f g : A -> nat) l b : (forall a, In a l -> f a <= g a) ->
  In b l -> f b < g b -> sumf f l < sumf g l.
Proof.
  induction l; simpl; intros H I L; [tauto|].
  assert (sumf f l <= sumf g l) by (apply sumf_le; auto).
  pose proof (H a (or_introl eq_refl)).
  destruct I as [->|I]; [lia|]. assert (sumf f l < sumf g l) by (apply IHl; auto). lia.
Qed.

(* how often the prime p shards dimension i, and all dimensions *)
Definition in_dim (m : mesh) (t : list dim) (i p : nat) : nat := cnt p (sizes m (atoms (dim_at t i))).
Definition in_all (m : mesh) (t : list dim) (p : nat) : nat := cnt p (sizes m (used t)).

Lemma in_all_sum m t p : in_all m t p = sumf (fun i => in_dim m t i p) (seq 0 (length t)).
Proof.
  unfold in_all, in_dim, used, dim_at. induction t as [|d t IH]; auto.
  change (flat_map atoms (d :: t)) with (atoms d ++ flat_map atoms t).
  unfold sizes in *. rewrite map_app, cnt_app, IH. simpl. f_equal.
  assert (H : forall n s, sumf (fun j => cnt p (map (sz m) (atoms (nth j t d0)))) (seq s n)
    = sumf (fun j => cnt p (map (sz m) (atoms match j with 0 => d | S k => nth k t d0 end))) (seq (S s) n)).
  { induction n; simpl; intros s; auto. }
  apply H.
Qed.

Lemma cnt_filter m l p : cnt p (sizes m l) = length (filter (fun a => sz m a =? p) l).
Proof.
  induction l; simpl; auto. destruct (Nat.eq_dec (sz m a) p) as [E|N].
  - rewrite E, Nat.eqb_refl. simpl. auto.
  - rewrite (proj2 (Nat.eqb_neq _ _) N). auto.
Qed.

(* If all atoms of size p are used, no layout uses more of them. *)
Lemma all_used_most m t t' p : wf m t' -> (forall a, a < length m -> sz m a = p -> In a (used t)) ->
  in_all m t' p <= in_all m t p.
Proof.
  intros [ND HL] AU. unfold in_all. rewrite !cnt_filter. apply NoDup_incl_length. { apply NoDup_filter; auto. }
  intros a Ha. apply filter_In in Ha as [H1 H2]. apply filter_In; split; auto.
  apply AU; auto. apply Nat.eqb_eq; auto.
Qed.

(* replacing one dimension *)
Lemma dim_upd_eq i d t : i < length t -> dim_at (upd i d t) i = d.
Proof. apply nth_upd_eq. Qed.
Lemma dim_upd_neq i j d t : i <> j -> dim_at (upd i d t) j = dim_at t j.
Proof. apply nth_upd_neq. Qed.
Lemma used_upd i d t : i < length t ->
  Permutation (atoms (dim_at t i) ++ used (upd i d t)) (atoms d ++ used t).
Proof.
  unfold used, dim_at. revert i; induction t as [|e t IH]; intros [|i] H; simpl in *; try lia.
  - apply Permutation_app_swap_app.
  - specialize (IH i ltac:(lia)).
    rewrite Permutation_app_swap_app. rewrite IH. apply Permutation_app_swap_app.
Qed.
Lemma wf_perm m t t' : Permutation (used t) (used t') -> wf m t -> wf m t'.
Proof.
  intros P [H1 H2]; split. { eapply Permutation_NoDup; eauto. }
  intros a Ha. apply H2. eapply Permutation_in; [apply Permutation_sym|]; eauto.
Qed.
Lemma same_shape_upd i A t : i < length t -> same_shape t (upd i (Dim (extent (dim_at t i)) A) t).
Proof.
  intros Hi. apply same_shape_intro. { rewrite upd_length; auto. } intros k Hk.
  destruct (Nat.eq_dec i k) as [<-|N]; [rewrite dim_upd_eq|rewrite dim_upd_neq]; auto.
Qed.
