(* The meaning of a layout.
   state V             what every device holds: device -> local index -> value
   denotes L A S       S holds the family A (summand -> array) laid out by L; replicas are equal, and nothing is
                       said about indices past the extents
   represents L G S    ... and the summands add up to the array G *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step.

(* Values are added by a commutative monoid: sum, product, max, min. *)
Record monoid (V : Type) := Monoid {
  add : V -> V -> V;
  zero : V;
  add_comm : forall a b, add a b = add b a;
  add_assoc : forall a b c, add a (add b c) = add (add a b) c;
  add_zero : forall a, add zero a = a }.
Arguments add {V}. Arguments zero {V}.

Definition state (V : Type) := dev -> idx -> V.

Definition denotes {V} (L : layout) (A : nat -> idx -> V) (S : state V) : Prop :=
  forall x l, valid (mesh_of L) x -> in_tile (mesh_of L) (dims L) x l ->
    S x l = A (ev (mesh_of L) (unreduced L) x) (gidx (mesh_of L) (dims L) x l).

(* The place of an element: its shard numbers and its place in that shard. *)
Fixpoint quot (m : mesh) (t : list dim) (g : idx) : list nat :=
  match t, g with d :: t, i :: g => i / tile_extent m d :: quot m t g | _, _ => [] end.
Fixpoint rem (m : mesh) (t : list dim) (g : idx) : idx :=
  match t, g with d :: t, i :: g => i mod tile_extent m d :: rem m t g | _, _ => [] end.

Lemma quot_length m t g : length g = length t -> length (quot m t g) = length t.
Proof. revert g; induction t; destruct g; simpl; intros; try lia. rewrite IHt; lia. Qed.
Lemma rem_length m t g : length g = length t -> length (rem m t g) = length t.
Proof. revert g; induction t; destruct g; simpl; intros; try lia. rewrite IHt; lia. Qed.
Lemma quot_nth m t g i : length g = length t -> i < length t ->
  nth i (quot m t g) 0 = nth i g 0 / tile_extent m (dim_at t i).
Proof. unfold dim_at; revert g i; induction t; destruct g, i; simpl; intros; try lia. apply IHt; lia. Qed.
Lemma rem_nth m t g i : length g = length t -> i < length t ->
  nth i (rem m t g) 0 = nth i g 0 mod tile_extent m (dim_at t i).
Proof. unfold dim_at; revert g i; induction t; destruct g, i; simpl; intros; try lia. apply IHt; lia. Qed.

(* Device x holds element g. *)
Definition holds (m : mesh) (t : list dim) (x : dev) (g : idx) : Prop :=
  in_shape t g /\ quot m t g = shard_of m t x.

Lemma in_shape_tile m t g i : mesh_ok m = true -> in_shape t g -> i < length t ->
  0 < tile_extent m (dim_at t i) /\ nth i g 0 < tile_extent m (dim_at t i) * shard_count m (dim_at t i).
Proof.
  intros Hm [_ H] Hi. specialize (H i Hi). pose proof (tile_covers m (dim_at t i) Hm). nia.
Qed.

Lemma quot_in_shards m t g : mesh_ok m = true -> in_shape t g -> in_shards m t (quot m t g).
Proof.
  intros Hm H. split. { apply quot_length, H. } intros i Hi. rewrite quot_nth by (auto; apply H).
  destruct (in_shape_tile m t g i Hm H Hi). apply Nat.div_lt_upper_bound; lia.
Qed.

Lemma holds_tile m t x g : mesh_ok m = true -> holds m t x g ->
  in_tile m t x (rem m t g) /\ gidx m t x (rem m t g) = g.
Proof.
  intros Hm [H E]. pose proof H as [L B].
  assert (G : gidx m t x (rem m t g) = g).
  { apply nth_ext with 0 0. { rewrite gidx_length; auto. apply rem_length; auto. }
    intros i Hi. rewrite gidx_length in Hi by (apply rem_length; auto).
    rewrite gidx_nth by (auto; apply rem_length; auto).
    rewrite <- shard_of_nth, <- E, quot_nth, rem_nth by auto.
    destruct (in_shape_tile m t g i Hm H Hi). rewrite <- Nat.div_mod; lia. }
  split; auto. split.
  - split. { apply rem_length; auto. } intros i Hi. rewrite rem_nth by auto.
    destruct (in_shape_tile m t g i Hm H Hi). apply Nat.mod_upper_bound. lia.
  - rewrite G. auto.
Qed.

Lemma tile_holds m t x l : in_tile m t x l ->
  holds m t x (gidx m t x l) /\ rem m t (gidx m t x l) = l.
Proof.
  intros [[L B] Hs]. pose proof (gidx_length m t x l L) as GL. split; [split; auto|].
  - apply nth_ext with 0 0. { rewrite shard_of_length, quot_length; auto. }
    intros i Hi. rewrite quot_length in Hi by auto. rewrite quot_nth, gidx_nth, shard_of_nth by auto.
    specialize (B i Hi). rewrite Nat.mul_comm, Nat.div_add_l by lia. rewrite Nat.div_small; lia.
  - apply nth_ext with 0 0. { rewrite rem_length; auto. }
    intros i Hi. rewrite rem_length in Hi by auto. rewrite rem_nth, gidx_nth by auto.
    specialize (B i Hi). rewrite Nat.add_comm, Nat.mul_comm, Nat.mod_add by lia. apply Nat.mod_small; lia.
Qed.

(* Write the shard numbers of g into any device: it becomes a holder of g. *)
Lemma setdims_holds m t x g : mesh_ok m = true -> wf m t -> valid m x -> in_shape t g ->
  valid m (setdims m t (quot m t g) x) /\ holds m t (setdims m t (quot m t g) x) g.
Proof.
  intros Hm W Hx H. pose proof (quot_in_shards m t g Hm H) as Q.
  split. { apply setdims_valid; auto. } split; auto.
  apply nth_ext with 0 0. { rewrite shard_of_length. apply Q. }
  intros i Hi. destruct Q as [QL QB]. rewrite QL in Hi.
  rewrite shard_of_nth, ev_setdims; auto. { apply Hx. } split; auto.
Qed.

(* A holder needs no writing. *)
Lemma setdims_home m t x g : wf m t -> valid m x -> holds m t x g -> setdims m t (quot m t g) x = x.
Proof. intros W Hx [_ E]. rewrite E. apply setdims_same; auto. Qed.

(* The summand's own dimension. *)
Lemma tile_summand m U : mesh_ok m = true -> tile_extent m (Dim (prodsz m U) U) = 1.
Proof.
  intros Hm. unfold tile_extent, shard_count; simpl. pose proof (mesh_ok_prodsz m U Hm).
  apply ceil_div_exact; lia.
Qed.

Lemma holds_full L x u g : mesh_ok (mesh_of L) = true ->
  holds (mesh_of L) (full L) x (u :: g) <->
  u < summand_count L /\ ev (mesh_of L) (unreduced L) x = u /\ holds (mesh_of L) (dims L) x g.
Proof.
  intros Hm. unfold holds, full, summand_count, in_shape. cbn [quot shard_of map atoms].
  rewrite tile_summand by auto. rewrite Nat.div_1_r. split.
  - intros [[H1 H2] H3]. simpl in H1. pose proof (H2 0 ltac:(simpl; lia)) as H0. injection H3 as E1 E2.
    split; [exact H0|]. split; auto. split; [split; [lia|]|exact E2].
    intros i Hi. apply (H2 (S i)). simpl; lia.
  - intros [H1 [H2 [[H3 H4] H5]]]. split.
    + split. { simpl; lia. } intros [|i] Hi; simpl; auto. apply H4. simpl in Hi; lia.
    + unfold shard_of in H5. rewrite H5, H2. reflexivity.
Qed.

(* denotes, element by element *)
Lemma denotes_holds {V} L A (S : state V) x g : layout_ok L = true -> denotes L A S ->
  valid (mesh_of L) x -> holds (mesh_of L) (dims L) x g ->
  S x (rem (mesh_of L) (dims L) g) = A (ev (mesh_of L) (unreduced L) x) g.
Proof.
  intros OK D Hx H. apply layout_ok_iff in OK as [Hm W].
  destruct (holds_tile _ _ _ _ Hm H) as [T E]. rewrite (D x _ Hx T), E. reflexivity.
Qed.

(* sums *)
Section Sums.
Context {V : Type} (M : monoid V).

Fixpoint sumn (f : nat -> V) n := match n with 0 => zero M | S n => add M (sumn f n) (f n) end.
Lemma sumn_ext f g n : (forall i, i < n -> f i = g i) -> sumn f n = sumn g n.
Proof. induction n; simpl; intros H; auto. rewrite H, IHn by auto. auto. Qed.
Lemma sumn_add f g n : sumn (fun i => add M (f i) (g i)) n = add M (sumn f n) (sumn g n).
Proof.
  induction n; simpl. { rewrite add_zero; auto. } rewrite IHn.
  rewrite !add_assoc. f_equal. rewrite <- !add_assoc. f_equal. apply add_comm.
Qed.
Lemma sumn_zero n : sumn (fun _ => zero M) n = zero M.
Proof. induction n; simpl; auto. rewrite IHn, add_zero; auto. Qed.
Lemma sumn_swap f a b :
  sumn (fun i => sumn (fun j => f i j) b) a = sumn (fun j => sumn (fun i => f i j) a) b.
Proof. induction a; simpl. { rewrite sumn_zero; auto. } rewrite IHa, <- sumn_add. auto. Qed.
Lemma sumn_app f a b : sumn f (a + b) = add M (sumn f a) (sumn (fun j => f (a + j)) b).
Proof.
  induction b; simpl. { rewrite Nat.add_0_r, add_comm, add_zero; auto. }
  rewrite Nat.add_succ_r; simpl. rewrite IHb, add_assoc. auto.
Qed.
Lemma sumn_mul f a b : sumn f (a * b) = sumn (fun i => sumn (fun j => f (i * b + j)) b) a.
Proof. induction a; simpl; auto. rewrite Nat.add_comm, sumn_app, IHa. auto. Qed.
(* only one term is not zero *)
Lemma sumn_one f n k : k < n -> sumn (fun w => if w =? k then f w else zero M) n = f k.
Proof.
  induction n; intros H; [lia|]. simpl. destruct (Nat.eqb_spec n k) as [->|N].
  - rewrite (sumn_ext _ (fun _ => zero M)). { rewrite sumn_zero, add_zero; auto. }
    intros i Hi. destruct (Nat.eqb_spec i k); auto; lia.
  - rewrite IHn by lia. rewrite add_comm, add_zero; auto.
Qed.

(* the sum of F over all values of the digits U of a device *)
Definition sumd (m : mesh) (U : list nat) (F : dev -> V) (x : dev) : V :=
  sumn (fun v => F (setd m U v x)) (prodsz m U).

Lemma sumd_nil m F x : sumd m [] F x = F x.
Proof. unfold sumd; simpl. apply add_zero. Qed.
Lemma sumd_cons m a U F x : sumd m (a :: U) F x = sumn (fun v => sumd m U F (upd a v x)) (sz m a).
Proof.
  unfold sumd. simpl prodsz. rewrite sumn_mul. apply sumn_ext. intros i Hi. apply sumn_ext. intros j Hj.
  simpl. rewrite Nat.div_add_l, Nat.div_small by lia. rewrite Nat.add_0_r.
  rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. auto.
Qed.
Lemma sumd_app m U W F x : sumd m (U ++ W) F x = sumd m U (fun y => sumd m W F y) x.
Proof.
  revert x; induction U as [|a U IH]; intros x; simpl app.
  - rewrite sumd_nil; auto.
  - rewrite !sumd_cons. apply sumn_ext. intros; apply IH.
Qed.
(* the order of the atoms of a sum is irrelevant *)
Lemma sumd_perm m U U' F : Permutation U U' -> NoDup U -> forall x, sumd m U F x = sumd m U' F x.
Proof.
  induction 1; intros ND x1; auto.
  - rewrite !sumd_cons. apply sumn_ext. intros; apply IHPermutation. inversion ND; auto.
  - rewrite !sumd_cons. inversion ND as [|? ? N1 N2]; subst.
    erewrite sumn_ext. 2: { intros i Hi. rewrite sumd_cons. reflexivity. }
    rewrite sumn_swap. apply sumn_ext. intros i Hi. rewrite sumd_cons. apply sumn_ext. intros j Hj.
    rewrite upd_comm; auto. intros ->; apply N1; simpl; auto.
  - rewrite IHPermutation1 by auto. apply IHPermutation2. eapply Permutation_NoDup; eauto.
Qed.

(* the array that a family of summands stands for *)
Definition total (L : layout) (A : nat -> idx -> V) (g : idx) : V :=
  sumn (fun v => A v g) (summand_count L).

Lemma total_sumd L A g : layout_ok L = true ->
  total L A g = sumd (mesh_of L) (unreduced L) (fun y => A (ev (mesh_of L) (unreduced L) y) g) (zero_dev (mesh_of L)).
Proof.
  intros OK. apply layout_ok_iff in OK as [Hm W]. destruct (wf_head _ _ _ W) as [ND [HL _]].
  unfold total, sumd. apply sumn_ext. intros v Hv. rewrite ev_setd; auto.
  intros a Ha. rewrite (proj1 (zero_valid _ Hm)); auto.
Qed.

Definition represents (L : layout) (G : idx -> V) (S : state V) : Prop :=
  exists A, denotes L A S /\ forall g, in_shape (dims L) g -> total L A g = G g.
End Sums.
