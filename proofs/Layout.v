(* A layout: the mesh, for every dimension its extent and its atoms (major to minor), and the unreduced atoms.
   dim, layout         as in the C++ (names and dtype are not modelled)
   tile_extent m d          ceil (extent / shards); shard k holds [min n (k*c), min n ((k+1)*c))
   full L              the dimensions of L with the summand as one more, leading dimension of tile extent 1
   in_tile m t x l     local index l is an element of the tile of device x (true tile, not padded)
   gidx m t x l        where that element lies in the array *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh.

Record dim := Dim { extent : nat; atoms : list nat }.
Record layout := Layout { mesh_of : mesh; dims : list dim; unreduced : list nat }.

Definition ceil_div (a b : nat) : nat := (a + b - 1) / b.
Definition shard_count (m : mesh) (d : dim) : nat := prodsz m (atoms d).
Definition tile_extent (m : mesh) (d : dim) : nat := ceil_div (extent d) (shard_count m d).
Definition summand_count (L : layout) : nat := prodsz (mesh_of L) (unreduced L).

(* An unreduced sum is an array with one more dimension, indexed by the summand, one summand per shard.
   With it every rule about dimensions covers the unreduced atoms too. *)
Definition full (L : layout) : list dim := Dim (summand_count L) (unreduced L) :: dims L.

Fixpoint size (m : mesh) (t : list dim) : nat :=
  match t with [] => 1 | d :: r => tile_extent m d * size m r end.
Definition tile_elements (L : layout) : nat := size (mesh_of L) (dims L).

Definition used (t : list dim) : list nat := flat_map atoms t.
(* the replicated atoms of the array *)
Definition rest (m : mesh) (t : list dim) : list nat :=
  filter (fun a => negb (existsb (Nat.eqb a) (used t))) (seq 0 (length m)).

(* Every atom exists and is used once. *)
Definition wf (m : mesh) (t : list dim) : Prop :=
  NoDup (used t) /\ forall a, In a (used t) -> a < length m.

Definition d0 := Dim 1 [].
Definition dim_at (t : list dim) (i : nat) : dim := nth i t d0.

Definition idx := list nat.
Definition in_bounds (m : mesh) (t : list dim) (l : idx) : Prop :=
  length l = length t /\ forall i, i < length t -> nth i l 0 < tile_extent m (dim_at t i).
Definition in_shape (t : list dim) (g : idx) : Prop :=
  length g = length t /\ forall i, i < length t -> nth i g 0 < extent (dim_at t i).
Fixpoint gidx (m : mesh) (t : list dim) (x : dev) (l : idx) : idx :=
  match t, l with
  | d :: t, i :: l => (tile_extent m d * ev m (atoms d) x + i) :: gidx m t x l
  | _, _ => []
  end.
Definition in_tile (m : mesh) (t : list dim) (x : dev) (l : idx) : Prop :=
  in_bounds m t l /\ in_shape t (gidx m t x l).

(* the same array: the same extents *)
Definition same_shape (t t' : list dim) : Prop := map extent t = map extent t'.

Lemma same_shape_length t t' : same_shape t t' -> length t = length t'.
Proof. intros H. rewrite <- (map_length extent t), H, map_length; auto. Qed.
Lemma same_shape_at t t' i : same_shape t t' -> extent (dim_at t i) = extent (dim_at t' i).
Proof.
  intros H. unfold dim_at. change (extent (nth i t d0)) with (extent (nth i t d0)).
  rewrite <- (map_nth extent t d0 i), <- (map_nth extent t' d0 i). rewrite H. reflexivity.
Qed.
Lemma same_shape_intro t t' : length t = length t' ->
  (forall i, i < length t -> extent (dim_at t i) = extent (dim_at t' i)) -> same_shape t t'.
Proof.
  intros HL H. apply nth_ext with (extent d0) (extent d0). { rewrite !map_length; auto. }
  intros n Hn. rewrite map_length in Hn. rewrite !map_nth. apply H; auto.
Qed.

(* ceiling division *)
Lemma ceil_div_spec a b : 0 < b -> a <= ceil_div a b * b /\ ceil_div a b * b < a + b.
Proof.
  intros H. unfold ceil_div. pose proof (Nat.div_mod (a + b - 1) b ltac:(lia)).
  pose proof (Nat.mod_upper_bound (a + b - 1) b ltac:(lia)). nia.
Qed.
Lemma ceil_div_exact a b c : 0 < b -> a = c * b -> ceil_div a b = c.
Proof. intros H ->. pose proof (ceil_div_spec (c * b) b H). nia. Qed.
Lemma ceil_div_1 a : ceil_div a 1 = a.
Proof. apply ceil_div_exact; lia. Qed.
Lemma ceil_div_le a b : 0 < b -> ceil_div a b <= a.
Proof. intros H. pose proof (ceil_div_spec a b H). nia. Qed.
Lemma ceil_div_pos a b : 0 < b -> 0 < a -> 0 < ceil_div a b.
Proof. intros H H'. pose proof (ceil_div_spec a b H). nia. Qed.

Lemma tile_covers m d : mesh_ok m = true -> extent d <= tile_extent m d * shard_count m d.
Proof. intros H. apply ceil_div_spec, mesh_ok_prodsz; auto. Qed.
Lemma tile_le_extent m d : mesh_ok m = true -> tile_extent m d <= extent d.
Proof. intros H. apply ceil_div_le, mesh_ok_prodsz; auto. Qed.

(* gidx point by point *)
Lemma gidx_length m t x l : length l = length t -> length (gidx m t x l) = length t.
Proof. revert l; induction t; destruct l; simpl; intros; try lia. rewrite IHt; lia. Qed.

Lemma gidx_nth m t x l i : length l = length t -> i < length t ->
  nth i (gidx m t x l) 0 = tile_extent m (dim_at t i) * ev m (atoms (dim_at t i)) x + nth i l 0.
Proof.
  unfold dim_at; revert l i; induction t; destruct l, i; simpl; intros; try lia.
  apply IHt; lia.
Qed.

Lemma gidx_inj m t x l l' : length l = length t -> length l' = length t ->
  gidx m t x l = gidx m t x l' -> l = l'.
Proof.
  intros H1 H2 E. apply nth_ext with 0 0; [lia|]. intros n Hn.
  pose proof (gidx_nth m t x l n H1 ltac:(lia)) as A.
  pose proof (gidx_nth m t x l' n H2 ltac:(lia)) as B. rewrite E in A. lia.
Qed.

Lemma gidx_ev_ext m t x y l :
  (forall i, i < length t -> ev m (atoms (dim_at t i)) x = ev m (atoms (dim_at t i)) y) ->
  gidx m t x l = gidx m t y l.
Proof.
  unfold dim_at; revert l; induction t; destruct l; simpl; intros H; auto. f_equal.
  - f_equal. f_equal. apply (H 0); lia.
  - apply IHt. intros i Hi. apply (H (S i)); lia.
Qed.

(* lists without repetition *)
Lemma nodup_app_disj {A} (l1 l2 : list A) a : NoDup (l1 ++ l2) -> In a l1 -> In a l2 -> False.
Proof.
  induction l1; simpl; intros ND H1 H2; auto. inversion ND; subst.
  destruct H1 as [->|H1]; auto. apply H3, in_or_app; auto.
Qed.
Lemma nodup_app_l {A} (l1 l2 : list A) : NoDup (l1 ++ l2) -> NoDup l1.
Proof.
  induction l1; simpl; intros H; constructor; inversion H; subst; auto.
  intros I; apply H2, in_or_app; auto.
Qed.
Lemma nodup_app_r {A} (l1 l2 : list A) : NoDup (l1 ++ l2) -> NoDup l2.
Proof. induction l1; simpl; intros H; auto. inversion H; auto. Qed.
Lemma nodup_app_intro {A} (l1 l2 : list A) :
  NoDup l1 -> NoDup l2 -> (forall a, In a l1 -> ~ In a l2) -> NoDup (l1 ++ l2).
Proof.
  induction l1; simpl; intros H1 H2 H; auto. inversion H1; subst. constructor.
  - rewrite in_app_iff. intros [I|I]; auto. apply (H a); auto.
  - apply IHl1; auto.
Qed.

Lemma in_used t i a : In a (atoms (dim_at t i)) -> In a (used t).
Proof.
  unfold dim_at, used; intros H. apply in_flat_map.
  destruct (Nat.lt_ge_cases i (length t)).
  - exists (nth i t d0); split; auto. apply nth_In; auto.
  - rewrite nth_overflow in H by auto. destruct H.
Qed.
Lemma used_in t a : In a (used t) -> exists i, i < length t /\ In a (atoms (dim_at t i)).
Proof.
  unfold used; intros I. apply in_flat_map in I as [d [I1 I2]].
  apply (In_nth _ _ d0) in I1 as [i [Hi <-]]. exists i; auto.
Qed.

Lemma nodup_atoms t i : NoDup (used t) -> NoDup (atoms (dim_at t i)).
Proof.
  unfold dim_at, used; revert i; induction t; simpl; intros i H.
  - destruct i; constructor.
  - destruct i. { eapply nodup_app_l; eauto. } apply IHt. eapply nodup_app_r; eauto.
Qed.

Lemma atoms_disj t i j a : NoDup (used t) -> i <> j ->
  In a (atoms (dim_at t i)) -> In a (atoms (dim_at t j)) -> False.
Proof.
  revert i j; induction t as [|d t IH]; intros i j ND N Hi Hj.
  - destruct i; destruct Hi.
  - unfold used in ND; simpl in ND. destruct i, j; try lia.
    + eapply nodup_app_disj; eauto. eapply (in_used t j); eauto.
    + eapply nodup_app_disj; eauto. eapply (in_used t i); eauto.
    + apply (IH i j); auto. eapply nodup_app_r; eauto.
Qed.

Lemma wf_tail m d t : wf m (d :: t) -> wf m t.
Proof.
  intros [ND HL]. unfold used in *; simpl in *. split. { eapply nodup_app_r; eauto. }
  intros; apply HL, in_or_app; auto.
Qed.
Lemma wf_head m d t : wf m (d :: t) ->
  NoDup (atoms d) /\ (forall a, In a (atoms d) -> a < length m) /\ forall a, In a (atoms d) -> ~ In a (used t).
Proof.
  intros [ND HL]. unfold used in *; simpl in *. split. { eapply nodup_app_l; eauto. } split.
  - intros; apply HL, in_or_app; auto.
  - intros a H1 H2. eapply nodup_app_disj; eauto.
Qed.

(* Overwrite the digits of every dimension. *)
Fixpoint setdims (m : mesh) (t : list dim) (q : list nat) (x : dev) : dev :=
  match t, q with
  | d :: t, v :: q => setdims m t q (setd m (atoms d) v x)
  | _, _ => x
  end.

Lemma setdims_length m t q x : length (setdims m t q x) = length x.
Proof. revert q x; induction t; destruct q; simpl; intros; auto. rewrite IHt, setd_length; auto. Qed.

Lemma setdims_other m t q x a : ~ In a (used t) -> nth a (setdims m t q x) 0 = nth a x 0.
Proof.
  unfold used; revert q x; induction t; destruct q; simpl; intros; auto.
  rewrite in_app_iff in H. rewrite IHt by tauto. apply setd_other; tauto.
Qed.

Definition in_shards (m : mesh) (t : list dim) (q : list nat) :=
  length q = length t /\ forall i, i < length t -> nth i q 0 < shard_count m (dim_at t i).

Lemma in_shards_cons m d t v q : in_shards m (d :: t) (v :: q) -> v < shard_count m d /\ in_shards m t q.
Proof.
  intros [H1 H2]; simpl in *; split. { apply (H2 0); lia. }
  split; [lia|]. intros i Hi. apply (H2 (S i)); lia.
Qed.

Lemma setdims_valid m t q x : valid m x -> in_shards m t q -> valid m (setdims m t q x).
Proof.
  revert q x; induction t; destruct q; intros x Hx Hq; simpl; auto.
  apply in_shards_cons in Hq as [H1 H2]. apply IHt; auto. apply setd_valid; auto.
Qed.

Lemma ev_setdims m t q x i : wf m t -> length x = length m -> in_shards m t q -> i < length t ->
  ev m (atoms (dim_at t i)) (setdims m t q x) = nth i q 0.
Proof.
  revert q x i; induction t as [|d t IH]; intros q x i W Lx Hq Hi; [simpl in Hi; lia|].
  destruct q as [|v q]; [destruct Hq; simpl in *; lia|].
  apply in_shards_cons in Hq as [H1 H2]. destruct (wf_head _ _ _ W) as [ND [HL HD]].
  simpl setdims. destruct i; simpl.
  - change (dim_at (d :: t) 0) with d.
    rewrite (ev_ext m _ _ (setd m (atoms d) v x)).
    + apply ev_setd; auto. intros a Ha. rewrite Lx. auto.
    + intros a Ha. apply setdims_other. auto.
  - change (dim_at (d :: t) (S i)) with (dim_at t i).
    apply IH; auto; try (simpl in Hi; lia).
    + eapply wf_tail; eauto.
    + rewrite setd_length; auto.
Qed.

Lemma setdims_in m t q x y a : wf m t -> length x = length y -> length q = length t -> In a (used t) ->
  nth a (setdims m t q x) 0 = nth a (setdims m t q y) 0.
Proof.
  revert q x y; induction t as [|d t IH]; intros q x y W Lx Lq I; [destruct I|].
  destruct q as [|v q]; [simpl in Lq; lia|]. simpl.
  destruct (in_dec Nat.eq_dec a (used t)) as [J|J].
  - apply IH; auto. { eapply wf_tail; eauto. } rewrite !setd_length; auto.
  - rewrite !setdims_other by auto. apply setd_in; auto.
    unfold used in *; simpl in I. apply in_app_iff in I as [I|I]; auto. tauto.
Qed.

(* the shard number of device x in every dimension *)
Definition shard_of (m : mesh) (t : list dim) (x : dev) : list nat := map (fun d => ev m (atoms d) x) t.

Lemma shard_of_nth m t x i : nth i (shard_of m t x) 0 = ev m (atoms (dim_at t i)) x.
Proof. unfold shard_of, dim_at. revert i; induction t; destruct i; simpl; auto. Qed.
Lemma shard_of_length m t x : length (shard_of m t x) = length t.
Proof. apply map_length. Qed.
Lemma shard_of_in m t x : valid m x -> in_shards m t (shard_of m t x).
Proof.
  intros Hx. split. { apply shard_of_length. } intros i Hi. rewrite shard_of_nth. apply ev_lt; auto.
Qed.

Lemma setdims_same m t x : wf m t -> valid m x -> setdims m t (shard_of m t x) x = x.
Proof.
  intros W Hx. induction t as [|d t IH]; simpl; auto. destruct (wf_head _ _ _ W) as [ND [HL _]].
  rewrite setd_same; auto. apply IH. eapply wf_tail; eauto.
Qed.

(* replicated atoms *)
Lemma existsb_In a l : existsb (Nat.eqb a) l = true <-> In a l.
Proof.
  rewrite existsb_exists; split.
  - intros [b [H1 H2]]. apply Nat.eqb_eq in H2; subst; auto.
  - intros H; exists a; split; auto. apply Nat.eqb_refl.
Qed.

Lemma in_rest m t a : In a (rest m t) <-> a < length m /\ ~ In a (used t).
Proof.
  unfold rest. rewrite filter_In, in_seq, Bool.negb_true_iff, <- Bool.not_true_iff_false, existsb_In.
  intuition lia.
Qed.

Lemma nodup_rest m t : NoDup (rest m t).
Proof. apply NoDup_filter, seq_NoDup. Qed.

Lemma used_rest m t : wf m t -> Permutation (used t ++ rest m t) (seq 0 (length m)).
Proof.
  intros [ND HL]. apply NoDup_Permutation.
  - apply nodup_app_intro; auto using nodup_rest. intros a H1 H2. apply in_rest in H2; tauto.
  - apply seq_NoDup.
  - intros a. rewrite in_app_iff, in_seq, in_rest. simpl.
    destruct (in_dec Nat.eq_dec a (used t)); intuition.
Qed.

Lemma prodsz_perm m l l' : Permutation l l' -> prodsz m l = prodsz m l'.
Proof. induction 1; simpl; lia. Qed.

Lemma prodsz_used m t t' : map (shard_count m) t = map (shard_count m) t' -> prodsz m (used t) = prodsz m (used t').
Proof.
  unfold used, shard_count; revert t'; induction t; destruct t'; simpl; intros H; try discriminate; auto.
  inversion H. rewrite !prodsz_app. rewrite (IHt t'); auto.
Qed.

Lemma prodsz_rest m t t' : mesh_ok m = true -> wf m t -> wf m t' ->
  map (shard_count m) t = map (shard_count m) t' -> prodsz m (rest m t) = prodsz m (rest m t').
Proof.
  intros Hm W W' H. pose proof (prodsz_used m t t' H) as E.
  pose proof (prodsz_perm m _ _ (used_rest m t W)) as E1.
  pose proof (prodsz_perm m _ _ (used_rest m t' W')) as E2.
  rewrite <- E2, !prodsz_app, E in E1.
  pose proof (mesh_ok_prodsz m (used t') Hm). nia.
Qed.
