(* A view writes the same tiles in another shape.
   place n l           the row-major number of index l in a box of extents n
   same_tiles m t u    every device holds the same elements under t and under u, in the same row-major order
   splits_dim          one dimension as two: the outer one takes the leading atoms
   view_split          such a split keeps the tiles; reflexive, symmetric and transitive as they are, tiles are the same
                       through any chain of splits and merges
   view_denotes        so the same memory means the same array *)
From Coq Require Import List Arith Lia PeanoNat.
Import ListNotations.
From Reshard Require Import Mesh Layout Meaning.

Fixpoint volume (n : list nat) : nat := match n with [] => 1 | e :: n => e * volume n end.
Fixpoint place (n : list nat) (l : idx) : nat :=
  match n, l with _ :: n, i :: l => i * volume n + place n l | _, _ => 0 end.

Definition tiles (m : mesh) (t : list dim) : list nat := map (tile_extent m) t.
Definition held_at (m : mesh) (t : list dim) (x : dev) (at_tile at_array : nat) : Prop :=
  exists l, in_tile m t x l /\ place (tiles m t) l = at_tile /\ place (map extent t) (gidx m t x l) = at_array.

(* The element with row-major number a in the array lies at row-major place p of the tile. *)
Definition same_tiles (m : mesh) (t u : list dim) : Prop :=
  forall x p a, valid m x -> (held_at m t x p a <-> held_at m u x p a).

Lemma same_tiles_refl m t : same_tiles m t t.
Proof. intros x p a _. tauto. Qed.
Lemma same_tiles_sym m t u : same_tiles m t u -> same_tiles m u t.
Proof. intros H x p a V. symmetry. apply H; auto. Qed.
Lemma same_tiles_trans m t u v : same_tiles m t u -> same_tiles m u v -> same_tiles m t v.
Proof. intros H K x p a V. rewrite (H x p a V). apply K; auto. Qed.

Lemma in_tile_cons m d t x i l : in_tile m (d :: t) x (i :: l) <->
  i < tile_extent m d /\ tile_extent m d * ev m (atoms d) x + i < extent d /\ in_tile m t x l.
Proof.
  unfold in_tile, in_bounds, in_shape, dim_at. simpl. split.
  - intros [[L B] [G F]]. repeat split; try lia.
    + apply (B 0); lia.
    + apply (F 0); lia.
    + intros k Hk. apply (B (S k)); lia.
    + intros k Hk. apply (F (S k)); lia.
  - intros [H1 [H2 [[L B] [G F]]]]. repeat split; try lia.
    + intros [|k] Hk; auto. apply B; lia.
    + intros [|k] Hk; auto. apply F; lia.
Qed.
Lemma in_tile_length m t x l : in_tile m t x l -> length l = length t.
Proof. intros [[L _] _]. exact L. Qed.

(* Dimensions in front of a view do not matter. *)
Lemma same_tiles_cons m d t u : volume (tiles m t) = volume (tiles m u) ->
  volume (map extent t) = volume (map extent u) -> same_tiles m t u -> same_tiles m (d :: t) (d :: u).
Proof.
  intros HT HE H x p a V.
  assert (one : forall t u, volume (tiles m t) = volume (tiles m u) -> volume (map extent t) = volume (map extent u) ->
    (forall p a, held_at m t x p a -> held_at m u x p a) -> held_at m (d :: t) x p a -> held_at m (d :: u) x p a).
  { clear. intros t u HT HE H [l [T [P A]]].
    destruct l as [|i l]. { apply in_tile_length in T. discriminate. }
    apply in_tile_cons in T as [T1 [T2 T3]]. simpl in P, A.
    destruct (H (place (tiles m t) l) (place (map extent t) (gidx m t x l))) as [k [K1 [K2 K3]]].
    { exists l; auto. }
    exists (i :: k). split. { apply in_tile_cons; auto. }
    simpl. rewrite K2, K3. change (map (tile_extent m) t) with (tiles m t) in *.
    change (map (tile_extent m) u) with (tiles m u). split.
    - rewrite <- HT. exact P.
    - rewrite <- HE. exact A. }
  split; apply one; auto; intros q b; apply H; auto.
Qed.

(* The shards of both dimensions divide them, and the inner one is cut only if the outer one is cut up. *)
Definition splits_dim (m : mesh) (e f : nat) (a b : list nat) : Prop :=
  exists i j, e = i * prodsz m a /\ f = j * prodsz m b /\ 0 < i /\ 0 < j /\ (i = 1 \/ b = []).

Lemma tile_of_parts m e f a b i j : mesh_ok m = true -> e = i * prodsz m a -> f = j * prodsz m b ->
  tile_extent m (Dim e a) = i /\ tile_extent m (Dim f b) = j /\ tile_extent m (Dim (e * f) (a ++ b)) = i * j.
Proof.
  intros Hm -> ->. unfold tile_extent, shard_count; simpl.
  pose proof (mesh_ok_prodsz m a Hm). pose proof (mesh_ok_prodsz m b Hm).
  pose proof (mesh_ok_prodsz m (a ++ b) Hm). rewrite prodsz_app in *.
  repeat split; apply ceil_div_exact; auto; lia.
Qed.

Theorem view_split m t1 t2 e f a b : mesh_ok m = true -> splits_dim m e f a b ->
  same_tiles m (t1 ++ Dim (e * f) (a ++ b) :: t2) (t1 ++ Dim e a :: Dim f b :: t2).
Proof.
  intros Hm [i [j [He [Hf [Hi [Hj C]]]]]].
  destruct (tile_of_parts m e f a b i j Hm He Hf) as [Te [Tf T]].
  assert (volumes : forall t1, volume (tiles m (t1 ++ Dim (e * f) (a ++ b) :: t2)) =
                               volume (tiles m (t1 ++ Dim e a :: Dim f b :: t2)) /\
                               volume (map extent (t1 ++ Dim (e * f) (a ++ b) :: t2)) =
                               volume (map extent (t1 ++ Dim e a :: Dim f b :: t2))).
  { unfold tiles. induction t0 as [|d t0 [IH1 IH2]]; simpl.
    - rewrite T, Te, Tf. lia.
    - rewrite IH1, IH2. auto. }
  induction t1 as [|d t1 IH].
  2: { simpl. apply same_tiles_cons; auto; apply volumes. }
  clear volumes. simpl. intros x p n V.
  (* the first element of the tile, in the array *)
  assert (start : i * j * ev m (a ++ b) x = (i * ev m a x) * f + j * ev m b x).
  { rewrite ev_app. destruct C as [-> | ->]; simpl in *.
    - subst f. lia.
    - rewrite Nat.mul_1_r in Hf. subst f. lia. }
  pose proof (ev_lt m a x V). pose proof (ev_lt m b x V).
  split.
  - intros [l [I [P N]]]. destruct l as [|k l]. { apply in_tile_length in I. discriminate. }
    apply in_tile_cons in I as [I1 [I2 I3]]. rewrite T in *. simpl in P, N. rewrite T in N. rewrite start in N.
    exists (k / j :: k mod j :: l).
    assert (k / j < i) by (apply Nat.div_lt_upper_bound; lia).
    assert (k mod j < j) by (apply Nat.mod_upper_bound; lia).
    pose proof (Nat.div_mod k j ltac:(lia)).
    assert (two : i * ev m a x * f + j * ev m b x + k = (i * ev m a x + k / j) * f + (j * ev m b x + k mod j)).
    { destruct C as [-> | ->].
      - assert (k / j = 0) by lia. nia.
      - simpl in Hf. rewrite Nat.mul_1_r in Hf. subst f. nia. }
    split; [|split].
    + apply in_tile_cons. rewrite Te. simpl. split; [assumption|]. split; [nia|].
      apply in_tile_cons. rewrite Tf. simpl. split; [assumption|]. split; [nia|exact I3].
    + simpl. change (map (tile_extent m) t2) with (tiles m t2) in *. rewrite Tf. nia.
    + simpl. rewrite Te, Tf. rewrite two in N. nia.
  - intros [l [I [P N]]]. destruct l as [|k l]. { apply in_tile_length in I. discriminate. }
    apply in_tile_cons in I as [I1 [I2 I3]].
    destruct l as [|k2 l]. { apply in_tile_length in I3. discriminate. }
    apply in_tile_cons in I3 as [J1 [J2 J3]]. rewrite Te in *. rewrite Tf in *. simpl in *. rewrite Tf in P. rewrite Te, Tf in N.
    exists (k * j + k2 :: l).
    assert (two : (i * ev m a x + k) * f + (j * ev m b x + k2) = i * ev m a x * f + j * ev m b x + (k * j + k2)).
    { destruct C as [-> | ->].
      - assert (k = 0) by lia. nia.
      - simpl in Hf. rewrite Nat.mul_1_r in Hf. subst f. nia. }
    split; [|split].
    + apply in_tile_cons. rewrite T. simpl. split; [nia|]. split; auto. rewrite start. nia.
    + simpl. change (map (tile_extent m) t2) with (tiles m t2) in *. nia.
    + simpl. rewrite T, start. nia.
Qed.

(* The same memory, read in the other shape, holds the same array, summand by summand. *)
Theorem view_denotes {V} (L K : layout) (A B : nat -> idx -> V) (S R : state V) :
  mesh_of L = mesh_of K -> unreduced L = unreduced K -> same_tiles (mesh_of L) (dims L) (dims K) ->
  (forall x l k, in_tile (mesh_of L) (dims L) x l -> in_tile (mesh_of L) (dims K) x k ->
    place (tiles (mesh_of L) (dims L)) l = place (tiles (mesh_of L) (dims K)) k -> S x l = R x k) ->
  (forall v g h, place (map extent (dims L)) g = place (map extent (dims K)) h -> A v g = B v h) ->
  denotes L A S -> denotes K B R.
Proof.
  intros HM HU HT memory array D x k Vx I. rewrite <- HM in *. rewrite <- HU.
  destruct (proj2 (HT x _ _ Vx) (ex_intro _ k (conj I (conj eq_refl eq_refl)))) as [l [J [P N]]].
  rewrite <- (memory x l k J I P). rewrite (D x l Vx J). apply array, N.
Qed.
