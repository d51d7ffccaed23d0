(* How many elements a device receives in a step, and closed forms that bound it on every device.
   sources k L L' x l    the devices whose values go into element l of x
   received k L L' x     elements that x takes from others
   overlap L L'          product over dimensions of the smaller tile extent
   missing_elements      the most elements that a device lacks of its new tile: closed form, or device by device
   certified k L L'      what a step is certified to receive; received_certified: no device receives more *)
From Coq Require Import List Arith Lia PeanoNat Permutation Bool.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate.

(* All index lists below the extents cs. *)
Fixpoint box (cs : list nat) : list idx :=
  match cs with [] => [[]] | c :: r => flat_map (fun i => map (cons i) (box r)) (seq 0 c) end.
(* one predicate per dimension *)
Fixpoint sat (ps : list (nat -> bool)) (l : idx) : bool :=
  match ps, l with p :: ps, i :: l => p i && sat ps l | _, _ => true end.
Definition count (p : nat -> bool) (c : nat) : nat := length (filter p (seq 0 c)).
Fixpoint counts (ps : list (nat -> bool)) (cs : list nat) : nat :=
  match ps, cs with p :: ps, c :: cs => count p c * counts ps cs | _, _ => 1 end.

Definition extents_of (m : mesh) (t : list dim) : list nat := map (tile_extent m) t.
(* index i of the tile of x is inside the array; and x holds it in dimension d before, or y of another mesh does *)
Definition inside (m : mesh) (e : dim) (x : dev) (i : nat) : bool :=
  tile_extent m e * ev m (atoms e) x + i <? extent e.
Definition at_home (m : mesh) (d e : dim) (x : dev) (i : nat) : bool :=
  inside m e x i && ((tile_extent m e * ev m (atoms e) x + i) / tile_extent m d =? ev m (atoms d) x).
Definition held_at (m : mesh) (d : dim) (y : dev) (m' : mesh) (e : dim) (x : dev) (i : nat) : bool :=
  inside m' e x i && ((tile_extent m' e * ev m' (atoms e) x + i) / tile_extent m d =? ev m (atoms d) y).
Fixpoint at_homes (m : mesh) (t t' : list dim) (x : dev) : list (nat -> bool) :=
  match t, t' with d :: t, e :: t' => at_home m d e x :: at_homes m t t' x | _, _ => [] end.
Definition insides (m : mesh) (t : list dim) (x : dev) : list (nat -> bool) := map (fun e => inside m e x) t.

(* the elements of the tile of x, as local indices *)
Definition tile (m : mesh) (t : list dim) (x : dev) : list idx := filter (sat (insides m t x)) (box (extents_of m t)).

Definition others (L L' : layout) (x : dev) (ys : list dev) : nat :=
  length (filter (fun y => negb (same_mesh L L' && same_list y x)) ys).
Definition group (L L' : layout) (x : dev) : list dev :=
  map (fun w => setd (mesh_of L) (reduced L L') w x) (seq 0 (prodsz (mesh_of L) (reduced L L'))).

Definition sources (k : kind) (L L' : layout) (x : dev) (l : idx) : list dev :=
  let m := mesh_of L in
  let g := gidx (mesh_of L') (dims L') x l in
  match k with
  | slice | all_gather | all_to_all | exchange => [pull_dev L L' x g]
  | permute => [perm_dev m (full L) (full L') x]
  | reduce_scatter => group L L' x
  | all_reduce =>
      let here := rem m (dims L) g in
      let n := group_size L L' in
      let r := ev m (reduced L L') x in
      (if r =? first L L' here then [] else [setd m (reduced L L') ((r + 1) mod n) x]) ++
      (if r =? last L L' here then [] else [setd m (reduced L L') ((r + n - 1) mod n) x])
  | zero_fill => []
  end.

Fixpoint sumf {A} (f : A -> nat) (l : list A) : nat := match l with [] => 0 | a :: r => f a + sumf f r end.
Definition received (k : kind) (L L' : layout) (x : dev) : nat :=
  sumf (fun l => others L L' x (sources k L L' x l)) (tile (mesh_of L') (dims L') x).

Fixpoint min_size (m : mesh) (t t' : list dim) : nat :=
  match t, t' with d :: t, e :: t' => Nat.min (tile_extent m d) (tile_extent m e) * min_size m t t' | _, _ => 1 end.
Definition overlap (L L' : layout) : nat := min_size (mesh_of L) (dims L) (dims L').

(* one list a prefix of the other, and the tile of the shorter exactly as many of the longer as the suffix counts *)
Definition splits_exactly (m : mesh) (d e : dim) : bool :=
  match after_prefix (atoms e) (atoms d) with
  | Some B => tile_extent m d =? tile_extent m e * prodsz m B
  | None => false
  end.
Definition nests_exactly (m : mesh) (d e : dim) : bool := splits_exactly m d e || splits_exactly m e d.
Definition comparable (L L' : layout) : bool :=
  same_mesh L L' && same_unreduced L L' && forall2b (nests_exactly (mesh_of L)) (dims L) (dims L').
Definition dividesb (m : mesh) (d : dim) : bool := extent d =? tile_extent m d * shard_count m d.
Definition even_layout (L : layout) : bool := forallb (dividesb (mesh_of L)) (dims L).

(* the interval of device x in a dimension, and what two intervals share *)
Definition begins (m : mesh) (d : dim) (x : dev) : nat := Nat.min (extent d) (ev m (atoms d) x * tile_extent m d).
Definition ends (m : mesh) (d : dim) (x : dev) : nat := Nat.min (extent d) ((ev m (atoms d) x + 1) * tile_extent m d).
Fixpoint wanted (m : mesh) (t : list dim) (x : dev) : nat :=
  match t with [] => 1 | e :: t => (ends m e x - begins m e x) * wanted m t x end.
Fixpoint kept (m : mesh) (t t' : list dim) (x : dev) : nat :=
  match t, t' with
  | d :: t, e :: t' =>
      (Nat.min (ends m d x) (ends m e x) - Nat.max (begins m d x) (begins m e x)) * kept m t t' x
  | _, _ => 1
  end.
Definition foreign_at (L L' : layout) (x : dev) : nat :=
  let m := mesh_of L in
  wanted m (dims L') x - (if ev m (unreduced L) x =? ev m (unreduced L') x then kept m (dims L) (dims L') x else 0).
Definition devices (m : mesh) : list dev := box m.

Definition missing_elements (L L' : layout) : nat :=
  if comparable L L' then tile_elements L' - overlap L L'
  else if negb (same_mesh L L') || (even_layout L && even_layout L') then tile_elements L'
  else fold_right Nat.max 0 (map (foreign_at L L') (devices (mesh_of L'))).

Definition certified (k : kind) (L L' : layout) : nat :=
  let g := group_size L L' in
  match k with
  | slice | zero_fill => 0
  | all_gather | all_to_all | exchange => missing_elements L L'
  | permute => tile_elements L'
  | reduce_scatter => (g - 1) * tile_elements L'
  | all_reduce => 2 * tile_elements L - 2 * tile_elements L / g
  end.

(* counting *)
Lemma filter_le {A} (f g : A -> bool) l : (forall a, In a l -> f a = true -> g a = true) ->
  length (filter f l) <= length (filter g l).
Proof.
  induction l as [|a l IH]; simpl; intros H; auto.
  assert (length (filter f l) <= length (filter g l)) by (apply IH; auto).
  destruct (f a) eqn:E. { rewrite (H a); simpl; auto; lia. } destruct (g a); simpl; lia.
Qed.
Lemma filter_length_le {A} (f : A -> bool) l : length (filter f l) <= length l.
Proof. induction l; simpl; auto. destruct (f a); simpl; lia. Qed.
Lemma filter_split {A} (f : A -> bool) l :
  length (filter f l) + length (filter (fun a => negb (f a)) l) = length l.
Proof. induction l; simpl; auto. destruct (f a); simpl; lia. Qed.
Lemma filter_filter {A} (f g : A -> bool) l : filter f (filter g l) = filter (fun a => g a && f a) l.
Proof.
  induction l; simpl; auto. destruct (g a); simpl; auto. destruct (f a); simpl; auto. f_equal; auto.
Qed.
Lemma filter_none {A} (f : A -> bool) l : (forall a, In a l -> f a = false) -> filter f l = [].
Proof. induction l; simpl; intros H; auto. rewrite (H a); auto. Qed.
Lemma filter_all {A} (f : A -> bool) l : (forall a, In a l -> f a = true) -> filter f l = l.
Proof. induction l; simpl; intros H; auto. rewrite (H a), IHl; auto. Qed.
Lemma filter_map_length {A B} (g : A -> B) f l :
  length (filter f (map g l)) = length (filter (fun a => f (g a)) l).
Proof. induction l; simpl; auto. destruct (f (g a)); simpl; auto. Qed.
Lemma sumf_le {A} (f g : A -> nat) l : (forall a, In a l -> f a <= g a) -> sumf f l <= sumf g l.
Proof.
  induction l; simpl; intros H; auto. pose proof (H a (or_introl eq_refl)).
  assert (sumf f l <= sumf g l) by (apply IHl; auto). lia.
Qed.
Lemma sumf_const {A} c (l : list A) : sumf (fun _ => c) l = length l * c.
Proof. induction l; simpl; auto. Qed.
Lemma sumf_count {A} (f : A -> bool) l : sumf (fun a => if f a then 1 else 0) l = length (filter f l).
Proof. induction l; simpl; auto. destruct (f a); simpl; auto. Qed.
Lemma sumf_plus {A} (f g : A -> nat) l : sumf (fun a => f a + g a) l = sumf f l + sumf g l.
Proof. induction l; simpl; auto. lia. Qed.

Lemma counts_filter ps cs : length ps = length cs -> length (filter (sat ps) (box cs)) = counts ps cs.
Proof.
  revert cs; induction ps as [|p ps IH]; destruct cs as [|c cs]; intros HL; simpl in HL; try lia; auto.
  specialize (IH cs ltac:(lia)). cbn [counts box]. unfold count. generalize (seq 0 c) as s.
  set (F := sat (p :: ps)).
  assert (FK : forall i l, F (i :: l) = p i && sat ps l) by reflexivity.
  clearbody F. unfold idx in *. induction s as [|i s IHs]; simpl; auto.
  rewrite filter_app, app_length, IHs, filter_map_length.
  rewrite (filter_ext _ (fun l => p i && sat ps l)) by (intros; apply FK).
  destruct (p i) eqn:K; simpl.
  - rewrite (filter_ext _ (sat ps)) by auto. f_equal. exact IH.
  - rewrite (filter_none (fun _ => false)); auto.
Qed.

Lemma in_box cs l : In l (box cs) <-> length l = length cs /\ forall i, i < length cs -> nth i l 0 < nth i cs 0.
Proof.
  revert l; induction cs as [|c cs IH]; intros l; simpl.
  - split. { intros [<-|[]]. split; simpl; auto; lia. } intros [H _]. destruct l; simpl in *; auto; lia.
  - rewrite in_flat_map. split.
    + intros [i [I1 I2]]. apply in_map_iff in I2 as [k [<- I2]]. apply in_seq in I1.
      apply IH in I2 as [H1 H2]. split. { simpl; lia. } intros [|n] Hn; simpl; [lia|]. apply H2; lia.
    + destruct l as [|i l]; intros [H1 H2]; simpl in *; [lia|]. exists i. split.
      * apply in_seq. specialize (H2 0 ltac:(lia)). simpl in H2. lia.
      * apply in_map, IH. split; [lia|]. intros n Hn. apply (H2 (S n)); lia.
Qed.

Lemma nodup_box cs : NoDup (box cs).
Proof.
  induction cs as [|c cs IH]; simpl. { repeat constructor; auto. }
  generalize 0; induction c; intros s; simpl. { constructor. }
  apply nodup_app_intro; auto.
  - apply FinFun.Injective_map_NoDup; auto. intros a b E; inversion E; auto.
  - intros l H1 H2. apply in_map_iff in H1 as [k [<- _]].
    apply in_flat_map in H2 as [i [I1 I2]]. apply in_seq in I1.
    apply in_map_iff in I2 as [k' [E _]]. inversion E. lia.
Qed.

Lemma box_length cs : length (box cs) = fold_right Nat.mul 1 cs.
Proof.
  induction cs as [|c cs IH]; simpl; auto. rewrite <- IH. generalize 0.
  induction c; intros s; simpl; auto. rewrite app_length, map_length, IHc. auto.
Qed.
Lemma size_prod m t : size m t = fold_right Nat.mul 1 (extents_of m t).
Proof. induction t; simpl; auto. Qed.

Lemma sat_insides m t x l : length l = length t ->
  sat (insides m t x) l = true <-> in_shape t (gidx m t x l).
Proof.
  revert l; induction t as [|e t IH]; destruct l as [|i l]; simpl; intros HL; try lia.
  - split; auto. intros _. split; auto. simpl; lia.
  - rewrite andb_true_iff, IH by lia. unfold inside, in_shape. rewrite Nat.ltb_lt. split.
    + intros [H1 [H2 H3]]. split. { simpl; lia. } intros [|n] Hn; simpl; auto. apply H3. simpl in Hn; lia.
    + intros [H1 H2]. split. { apply (H2 0). simpl; lia. } simpl in H1. split; [lia|].
      intros n Hn. apply (H2 (S n)). simpl; lia.
Qed.

Lemma in_tile_list m t x l : In l (tile m t x) <-> in_tile m t x l.
Proof.
  unfold tile. rewrite filter_In, in_box. unfold extents_of. rewrite map_length. unfold in_tile, in_bounds.
  assert (B : (forall i, i < length t -> nth i l 0 < nth i (map (tile_extent m) t) 0) <->
              (forall i, i < length t -> nth i l 0 < tile_extent m (dim_at t i))).
  { split; intros H i Hi; specialize (H i Hi); unfold dim_at in *.
    - rewrite (nth_indep (map (tile_extent m) t) 0 (tile_extent m d0)) in H by (rewrite map_length; auto). rewrite
      map_nth in H. auto.
    - rewrite (nth_indep (map (tile_extent m) t) 0 (tile_extent m d0)) by (rewrite map_length; auto). rewrite
      map_nth. auto. }
  rewrite B. split.
  - intros [[H1 H2] H3]. split; auto. apply sat_insides; auto.
  - intros [[H1 H2] H3]. split; auto. apply sat_insides; auto.
Qed.

Lemma nodup_tile m t x : NoDup (tile m t x).
Proof. apply NoDup_filter, nodup_box. Qed.
Lemma tile_length_le m t x : length (tile m t x) <= size m t.
Proof.
  rewrite size_prod, <- box_length. apply filter_length_le.
Qed.

Lemma sat_at_homes m t t' x l : length t = length t' -> length l = length t' -> same_shape t t' ->
  sat (at_homes m t t' x) l = true <-> holds m t x (gidx m t' x l).
Proof.
  intros HL. revert t' l HL; induction t as [|d t IH]; destruct t' as [|e t'], l as [|i l];
    simpl; intros HL H2 SH; try lia.
  - split; auto. intros _. split; auto. split; auto. simpl; lia.
  - unfold same_shape in SH. simpl in SH. injection SH as E1 E2.
    rewrite andb_true_iff, (IH t' l ltac:(lia) ltac:(lia) E2). unfold at_home, inside, holds, in_shape.
    rewrite andb_true_iff, Nat.ltb_lt, Nat.eqb_eq. simpl. split.
    + intros [[H3 H4] [[H5 H6] H7]]. split; [split; [lia|]|].
      * intros [|n] Hn; simpl; [unfold dim_at; simpl; lia|]. apply H6. lia.
      * rewrite H4, H7; auto.
    + intros [[H3 H4] H5]. injection H5 as H5 H6. repeat split; auto.
      * specialize (H4 0 ltac:(lia)). unfold dim_at in H4; simpl in H4. lia.
      * intros n Hn. apply (H4 (S n)). lia.
Qed.

Lemma at_home_inside m t t' x l : length t = length t' -> length l = length t' ->
  sat (at_homes m t t' x) l = true -> sat (insides m t' x) l = true.
Proof.
  revert t' l; induction t as [|d t IH]; destruct t' as [|e t'], l as [|i l]; simpl; intros HL H2 H; try lia; auto.
  apply andb_true_iff in H as [H1 H3]. unfold at_home in H1. apply andb_true_iff in H1 as [H1 _].
  rewrite H1. apply IH; auto.
Qed.

Lemma at_homes_length m t t' x : length t = length t' -> length (at_homes m t t' x) = length t'.
Proof. revert t'; induction t; destruct t'; simpl; intros; try lia. rewrite IHt; lia. Qed.

Definition foreign (m : mesh) (t t' : list dim) (x : dev) : list idx :=
  filter (fun l => negb (sat (at_homes m t t' x) l)) (tile m t' x).

(* Elements of the new tile that are not at home, by products over the dimensions. *)
Lemma foreign_count m t t' x : length t = length t' ->
  length (foreign m t t' x) + counts (at_homes m t t' x) (extents_of m t') =
  counts (insides m t' x) (extents_of m t').
Proof.
  intros HL. unfold foreign, extents_of.
  rewrite <- (counts_filter (insides m t' x)) by (unfold insides; rewrite !map_length; auto).
  rewrite <- (counts_filter (at_homes m t t' x)) by (rewrite at_homes_length, map_length; auto).
  fold (extents_of m t'). change (filter (sat (insides m t' x)) (box (extents_of m t'))) with (tile m t' x).
  rewrite <- (filter_split (sat (at_homes m t t' x)) (tile m t' x)).
  rewrite Nat.add_comm. f_equal. unfold tile. rewrite filter_filter. f_equal.
  apply filter_ext_in. intros l Hl. apply in_box in Hl as [Ll _].
  unfold extents_of in Ll. rewrite map_length in Ll.
  destruct (sat (at_homes m t t' x) l) eqn:E; [|rewrite andb_false_r; auto].
  rewrite (at_home_inside m t t' x l); auto.
Qed.

(* one dimension *)
Lemma count_split p q c : count p c = count (fun i => p i && q i) c + count (fun i => p i && negb (q i)) c.
Proof.
  unfold count. rewrite <- (filter_filter q p), <- (filter_filter (fun i => negb (q i)) p). symmetry.
  apply filter_split.
Qed.
Lemma count_le p c : count p c <= c.
Proof. unfold count. rewrite <- (seq_length c 0) at 2. apply filter_length_le. Qed.
Lemma count_block c k v : v < k -> count (fun i => i / c =? v) (c * k) = c.
Proof.
  unfold count. intros H. destruct (Nat.eq_dec c 0) as [->|Hc]; auto.
  replace (c * k) with (c * v + (c + (c * k - c * v - c))) by nia.
  rewrite !seq_app, !filter_app, !app_length. simpl.
  rewrite (filter_none _ (seq 0 (c * v))), (filter_all _ (seq (c * v) c)), filter_none.
  - rewrite seq_length; simpl; lia.
  - intros i Hi. apply in_seq in Hi. apply Nat.eqb_neq. intros E.
    pose proof (Nat.div_mod i c Hc). pose proof (Nat.mod_upper_bound i c Hc). nia.
  - intros i Hi. apply in_seq in Hi. apply Nat.eqb_eq.
    symmetry. apply Nat.div_unique with (i - c * v); nia.
  - intros i Hi. apply in_seq in Hi. apply Nat.eqb_neq. intros E.
    pose proof (Nat.div_mod i c Hc). nia.
Qed.
Lemma count_mono p q c : (forall i, i < c -> p i = true -> q i = true) -> count p c <= count q c.
Proof. intros H. apply filter_le. intros i Hi. apply in_seq in Hi. apply H; lia. Qed.
Lemma count_ext p q c : (forall i, i < c -> p i = q i) -> count p c = count q c.
Proof. intros H. unfold count. f_equal. apply filter_ext_in. intros i Hi. apply in_seq in Hi. apply H; lia. Qed.

Record dim_bound (t o c' mn : nat) : Prop := {
  db_home : o <= t; db_tile : t <= c'; db_min : o <= mn; db_le : mn <= c'; db_foreign : t - o <= c' - mn }.

Lemma splits_exactly_ok m d e : splits_exactly m d e = true <->
  exists B, atoms e = atoms d ++ B /\ tile_extent m d = tile_extent m e * prodsz m B.
Proof.
  unfold splits_exactly. destruct (after_prefix (atoms e) (atoms d)) as [B|] eqn:E.
  - apply after_prefix_ok in E. rewrite Nat.eqb_eq. split.
    + intros H; exists B; auto.
    + intros [C [H1 H2]]. rewrite E in H1. apply app_inv_head in H1. subst; auto.
  - split; [discriminate|]. intros [B [H _]]. apply after_prefix_ok in H. congruence.
Qed.
Lemma splits_exactly_splits m d e : mesh_ok m = true -> extent d = extent e ->
  splits_exactly m d e = true -> splits m d e = true.
Proof.
  intros Hm EX H. apply splits_exactly_ok in H as [B [EB ET]]. apply splits_ok. exists B. split; auto.
  pose proof (tile_le_extent m d Hm). lia.
Qed.

Lemma nests_bound m d e x : valid m x -> extent d = extent e -> nests_exactly m d e = true ->
  dim_bound (count (inside m e x) (tile_extent m e)) (count (at_home m d e x) (tile_extent m e))
            (tile_extent m e) (Nat.min (tile_extent m d) (tile_extent m e)).
Proof.
  intros Hx EX N. pose proof (valid_mesh_ok m x Hx) as Hm.
  set (c := tile_extent m d) in *. set (c' := tile_extent m e) in *.
  pose proof (count_split (inside m e x)
    (fun i => (c' * ev m (atoms e) x + i) / c =? ev m (atoms d) x) c') as SP.
  cbv beta in SP.
  change (count (fun i => inside m e x i && ((c' * ev m (atoms e) x + i) / c =? ev m (atoms d) x)) c')
    with (count (at_home m d e x) c') in SP.
  pose proof (count_le (inside m e x) c') as TC.
  unfold nests_exactly in N. apply orb_true_iff in N as [N|N]; apply splits_exactly_ok in N as [B [EB ET]].
  - fold c c' in ET. pose proof (mesh_ok_prodsz m B Hm) as PB. pose proof (ev_lt m B x Hx) as LB.
    assert (Z : count (fun i => inside m e x i && negb ((c' * ev m (atoms e) x + i) / c =? ev m (atoms d) x)) c' = 0).
    { unfold count. rewrite filter_none; auto. intros i Hi. apply in_seq in Hi.
      apply andb_false_iff. right. apply negb_false_iff, Nat.eqb_eq. rewrite EB, ev_app, ET.
      symmetry. apply Nat.div_unique with (c' * ev m B x + i); nia. }
    rewrite Z in SP. assert (c' <= c) by nia. split; lia.
  - fold c c' in ET. pose proof (mesh_ok_prodsz m B Hm) as PB. pose proof (ev_lt m B x Hx) as LB.
    assert (EQ : forall i, i < c' -> ((c' * ev m (atoms e) x + i) / c =? ev m (atoms d) x) = (i / c =? ev m B x)).
    { intros i Hi. rewrite EB, ev_app, ET. assert (Hc : c <> 0) by nia.
      replace (c * prodsz m B * ev m (atoms e) x + i) with ((ev m (atoms e) x * prodsz m B) * c + i) by nia.
      rewrite Nat.div_add_l by auto.
      destruct (Nat.eqb_spec (i / c) (ev m B x)) as [->|Ne]; [apply Nat.eqb_refl|apply Nat.eqb_neq; lia]. }
    assert (BL : count (fun i => i / c =? ev m B x) c' = c) by (rewrite ET; apply count_block; auto).
    assert (O : count (at_home m d e x) c' <= c).
    { rewrite <- BL. apply count_mono. intros i Hi H. unfold at_home in H. fold c c' in H.
      apply andb_true_iff in H as [_ H]. rewrite <- (EQ i Hi). auto. }
    assert (F : count (fun i => inside m e x i && negb ((c' * ev m (atoms e) x + i) / c =? ev m (atoms d) x)) c'
                <= c' - c).
    { pose proof (count_split (fun _ => true) (fun i => i / c =? ev m B x) c') as S2. simpl in S2.
      rewrite BL in S2. pose proof (count_le (fun _ => true) c') as CL.
      transitivity (count (fun i => negb (i / c =? ev m B x)) c'); [|lia].
      apply count_mono. intros i Hi H. apply andb_true_iff in H as [_ H]. rewrite (EQ i Hi) in H. auto. }
    assert (c <= c') by nia. split; lia.
Qed.

(* the same at device zero, whatever the atoms: its tile is the first of each dimension, and full *)
Lemma zero_bound m d e : mesh_ok m = true -> extent d = extent e ->
  count (inside m e (zero_dev m)) (tile_extent m e) = tile_extent m e /\
  count (at_home m d e (zero_dev m)) (tile_extent m e) = Nat.min (tile_extent m d) (tile_extent m e).
Proof.
  intros Hm EX. pose proof (tile_le_extent m e Hm) as L1.
  assert (IN : forall i, i < tile_extent m e -> inside m e (zero_dev m) i = true).
  { intros i Hi. unfold inside. rewrite ev_zero. apply Nat.ltb_lt. lia. }
  split.
  - unfold count. rewrite filter_all. { apply seq_length. } intros i Hi. apply in_seq in Hi. apply IN; lia.
  - set (c := tile_extent m d). set (c' := tile_extent m e) in *.
    destruct (Nat.eq_dec c 0) as [C0|C0].
    { assert (E0 : extent d = 0).
      { destruct (Nat.eq_dec (extent d) 0); auto. pose proof (ceil_div_pos (extent d) (shard_count m d)
          (mesh_ok_prodsz m (atoms d) Hm) ltac:(lia)). unfold c, tile_extent in C0. lia. }
      assert (c' = 0) by lia. rewrite C0, H. reflexivity. }
    rewrite (count_ext _ (fun i => i <? c)).
    + unfold count. clear. destruct (Nat.le_gt_cases c c') as [H|H].
      * rewrite Nat.min_l by auto. replace c' with (c + (c' - c)) by lia. rewrite seq_app, filter_app, app_length.
        rewrite filter_all, filter_none.
        { rewrite seq_length; simpl; lia. }
        { intros i Hi. apply in_seq in Hi. apply Nat.ltb_ge. lia. }
        { intros i Hi. apply in_seq in Hi. apply Nat.ltb_lt. lia. }
      * rewrite Nat.min_r by lia. rewrite filter_all. { apply seq_length. }
        intros i Hi. apply in_seq in Hi. apply Nat.ltb_lt. lia.
    + intros i Hi. unfold at_home. rewrite IN by auto. simpl. rewrite !ev_zero. fold c c'.
      rewrite Nat.mul_0_r. simpl.
      destruct (Nat.ltb_spec i c) as [H|H].
      * apply Nat.eqb_eq, Nat.div_small; auto.
      * apply Nat.eqb_neq. intros E. apply Nat.div_small_iff in E; auto. lia.
Qed.

(* products of dimension bounds *)
Lemma counts_bound m t t' x : valid m x -> same_shape t t' -> forall2b (nests_exactly m) t t' = true ->
  dim_bound (counts (insides m t' x) (extents_of m t')) (counts (at_homes m t t' x) (extents_of m t'))
            (size m t') (min_size m t t').
Proof.
  intros Hx. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; intros SH N; simpl in N; try discriminate.
  - split; simpl; lia.
  - apply andb_true_iff in N as [N1 N2]. unfold same_shape in SH; simpl in SH. injection SH as E1 E2.
    pose proof (nests_bound m d e x Hx E1 N1) as [A1 A2 A3 A4 A5].
    pose proof (IH t' E2 N2) as [B1 B2 B3 B4 B5]. simpl.
    set (t1 := count (inside m e x) (tile_extent m e)) in *.
    set (o1 := count (at_home m d e x) (tile_extent m e)) in *.
    set (c1 := tile_extent m e) in *. set (m1 := Nat.min (tile_extent m d) c1) in *.
    set (T := counts (insides m t' x) (extents_of m t')) in *.
    set (O := counts (at_homes m t t' x) (extents_of m t')) in *.
    set (C := size m t') in *. set (Mn := min_size m t t') in *.
    assert (F : t1 * T - o1 * O <= c1 * C - m1 * Mn).
    { assert (H1 : t1 * T - o1 * O = (t1 - o1) * T + o1 * (T - O)).
      { rewrite Nat.mul_sub_distr_r, Nat.mul_sub_distr_l. nia. }
      assert (H2 : c1 * C - m1 * Mn = (c1 - m1) * C + m1 * (C - Mn)).
      { rewrite Nat.mul_sub_distr_r, Nat.mul_sub_distr_l. nia. }
      rewrite H1, H2. apply Nat.add_le_mono; apply Nat.mul_le_mono; lia. }
    split; auto; apply Nat.mul_le_mono; auto.
Qed.

Lemma counts_zero m t t' : mesh_ok m = true -> same_shape t t' ->
  counts (insides m t' (zero_dev m)) (extents_of m t') = size m t' /\
  counts (at_homes m t t' (zero_dev m)) (extents_of m t') = min_size m t t'.
Proof.
  intros Hm. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; intros SH;
    unfold same_shape in SH; simpl in SH; try discriminate; auto.
  injection SH as E1 E2. destruct (IH t' E2) as [H1 H2]. destruct (zero_bound m d e Hm E1) as [H3 H4].
  simpl. rewrite H1, H2, H3, H4. auto.
Qed.

(* the same counts, as intervals *)
Lemma count_interval a b z c : count (fun i => (a <=? b + i) && (b + i <? z)) c = Nat.min z (b + c) - Nat.max a b.
Proof.
  unfold count. induction c; [simpl; lia|]. rewrite seq_S, filter_app, app_length, IHc. simpl.
  destruct (Nat.leb_spec a (b + c)), (Nat.ltb_spec (b + c) z); simpl; lia.
Qed.
Lemma count_inside m e x : count (inside m e x) (tile_extent m e) = ends m e x - begins m e x.
Proof.
  rewrite (count_ext _ (fun i => (0 <=? tile_extent m e * ev m (atoms e) x + i) &&
                                  (tile_extent m e * ev m (atoms e) x + i <? extent e))) by auto.
  rewrite count_interval. unfold begins, ends. nia.
Qed.
Lemma count_held m d y m' e x : mesh_ok m = true -> extent d = extent e ->
  count (held_at m d y m' e x) (tile_extent m' e) =
  Nat.min (ends m d y) (ends m' e x) - Nat.max (begins m d y) (begins m' e x).
Proof.
  intros Hm EX. set (c := tile_extent m d). set (c' := tile_extent m' e). set (k := ev m (atoms d) y).
  set (b := c' * ev m' (atoms e) x).
  rewrite (count_ext _ (fun i => (k * c <=? b + i) && (b + i <? Nat.min (extent e) ((k + 1) * c)))).
  - rewrite count_interval. unfold begins, ends. fold c c' k. rewrite EX. unfold b. nia.
  - intros i Hi. unfold held_at, inside. fold c c' k b.
    destruct (Nat.ltb_spec (b + i) (extent e)) as [H|H]; simpl.
    + assert (C : 0 < c) by (apply ceil_div_pos; [apply mesh_ok_prodsz; auto|lia]).
      pose proof (Nat.div_mod (b + i) c ltac:(lia)). pose proof (Nat.mod_upper_bound (b + i) c ltac:(lia)).
      destruct (Nat.eqb_spec ((b + i) / c) k) as [E|E].
      * symmetry. apply andb_true_iff. rewrite Nat.leb_le, Nat.ltb_lt. nia.
      * symmetry. apply andb_false_iff. rewrite Nat.leb_gt, Nat.ltb_ge.
        destruct (Nat.lt_ge_cases ((b + i) / c) k); [left|right]; nia.
    + symmetry. apply andb_false_iff. right. apply Nat.ltb_ge. lia.
Qed.
Lemma count_at_home m d e x : mesh_ok m = true -> extent d = extent e ->
  count (at_home m d e x) (tile_extent m e) =
  Nat.min (ends m d x) (ends m e x) - Nat.max (begins m d x) (begins m e x).
Proof. exact (count_held m d x m e x). Qed.
Lemma counts_wanted m t x : counts (insides m t x) (extents_of m t) = wanted m t x.
Proof. induction t as [|e t IH]; auto. simpl. rewrite count_inside, IH. auto. Qed.
Lemma counts_kept m t t' x : mesh_ok m = true -> same_shape t t' ->
  counts (at_homes m t t' x) (extents_of m t') = kept m t t' x.
Proof.
  intros Hm. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; intros SH; unfold same_shape in SH;
    simpl in SH; try discriminate; auto.
  injection SH as E1 E2. simpl. rewrite count_at_home, IH by auto. auto.
Qed.
Lemma tile_length m t x : length (tile m t x) = wanted m t x.
Proof.
  rewrite <- counts_wanted. unfold tile. apply counts_filter. unfold insides, extents_of. rewrite !map_length. auto.
Qed.

Lemma device_valid m x : In x (devices m) <-> valid m x.
Proof.
  unfold devices. rewrite in_box. unfold valid, sz. split; intros [H1 H2]; split; auto.
  - intros a. destruct (Nat.lt_ge_cases a (length m)) as [L|L].
    + rewrite (nth_indep m 1 0) by auto. auto.
    + rewrite !nth_overflow by lia. lia.
  - intros i Hi. rewrite (nth_indep m 0 1) by auto. auto.
Qed.

(* A device never fetches what it holds. *)
Lemma pull_home L L' x g : layout_ok L = true -> same_mesh L L' = true ->
  ev (mesh_of L) (unreduced L) x = ev (mesh_of L) (unreduced L') x ->
  valid (mesh_of L) x -> holds (mesh_of L) (dims L) x g -> pull_dev L L' x g = x.
Proof.
  intros OK EM EV Hx H. apply layout_ok_iff in OK as [Hm W]. unfold pull_dev. rewrite EM.
  apply same_mesh_ok in EM. rewrite <- EM, <- EV.
  apply setdims_home; auto. apply holds_full; auto. split; [apply ev_lt; auto|auto].
Qed.

Definition pulls (k : kind) : bool :=
  match k with slice | all_gather | all_to_all | exchange => true | _ => false end.

Lemma pulls_source k L L' x l : pulls k = true ->
  sources k L L' x l = [pull_dev L L' x (gidx (mesh_of L') (dims L') x l)].
Proof. destruct k; try discriminate; reflexivity. Qed.

Lemma received_pull k L L' x : layout_ok L = true -> same_shape (dims L) (dims L') -> pulls k = true ->
  same_mesh L L' = true -> ev (mesh_of L) (unreduced L) x = ev (mesh_of L) (unreduced L') x -> valid (mesh_of L) x ->
  received k L L' x <= length (foreign (mesh_of L) (dims L) (dims L') x).
Proof.
  intros OK SH PK EM EV Hx. pose proof EM as EM'. apply same_mesh_ok in EM'.
  unfold received, foreign. rewrite <- EM'. rewrite <- sumf_count. apply sumf_le.
  intros l Hl. apply in_tile_list in Hl as [[Ll _] _].
  rewrite pulls_source, <- EM' by auto. unfold others. simpl. rewrite EM. simpl.
  destruct (sat (at_homes (mesh_of L) (dims L) (dims L') x) l) eqn:E.
  - apply sat_at_homes in E; auto using same_shape_length.
    rewrite (pull_home L L' x _ OK EM EV Hx E). rewrite (proj2 (same_list_ok x x) eq_refl). simpl; auto.
  - simpl. destruct (negb _); simpl; lia.
Qed.

Lemma received_comparable k L L' x : layout_ok L = true -> same_shape (dims L) (dims L') -> pulls k = true ->
  comparable L L' = true -> valid (mesh_of L) x -> received k L L' x <= tile_elements L' - overlap L L'.
Proof.
  intros OK SH PK C Hx. unfold comparable in C. rewrite !andb_true_iff in C. destruct C as [[EM EU] N].
  assert (EV : ev (mesh_of L) (unreduced L) x = ev (mesh_of L) (unreduced L') x)
    by (apply same_unreduced_ok in EU; congruence).
  pose proof (received_pull k L L' x OK SH PK EM EV Hx).
  pose proof (foreign_count (mesh_of L) (dims L) (dims L') x (same_shape_length _ _ SH)).
  pose proof (counts_bound _ _ _ _ Hx SH N) as [A1 A2 A3 A4 A5].
  apply same_mesh_ok in EM. unfold tile_elements, overlap. rewrite <- EM. lia.
Qed.

Lemma received_le_tile k L L' x : (forall l, length (sources k L L' x l) = 1) ->
  received k L L' x <= length (tile (mesh_of L') (dims L') x).
Proof.
  intros H. unfold received. transitivity (sumf (fun _ => 1) (tile (mesh_of L') (dims L') x)).
  - apply sumf_le. intros l _. unfold others. rewrite <- (H l). apply filter_length_le.
  - rewrite sumf_const, Nat.mul_1_r. auto.
Qed.

Lemma le_max (f : dev -> nat) l x : In x l -> f x <= fold_right Nat.max 0 (map f l).
Proof. induction l; simpl; intros I; [tauto|]. destruct I as [->|I]; [lia|]. specialize (IHl I). lia. Qed.
Lemma max_attained (f : dev -> nat) l : l <> [] -> exists x, In x l /\ f x = fold_right Nat.max 0 (map f l).
Proof.
  induction l as [|y [|z l] IH]; intros N; [congruence|exists y; simpl; split; [auto|lia]|].
  destruct IH as [x [I E]]; [congruence|]. cbn [map fold_right] in *.
  destruct (Nat.le_gt_cases (f x) (f y)).
  - exists y. split; [simpl; auto|]. lia.
  - exists x. split; [simpl in *; auto|]. lia.
Qed.

Lemma received_foreign_at k L L' x : layout_ok L = true -> same_shape (dims L) (dims L') -> pulls k = true ->
  same_mesh L L' = true -> valid (mesh_of L) x -> received k L L' x <= foreign_at L L' x.
Proof.
  intros OK SH PK EM Hx. pose proof EM as E. apply same_mesh_ok in E. unfold foreign_at.
  destruct (Nat.eqb_spec (ev (mesh_of L) (unreduced L) x) (ev (mesh_of L) (unreduced L') x)) as [EV|EV].
  - pose proof (received_pull k L L' x OK SH PK EM EV Hx).
    pose proof (foreign_count (mesh_of L) (dims L) (dims L') x (same_shape_length _ _ SH)) as F.
    rewrite counts_wanted, counts_kept in F; auto; [lia|]. apply layout_ok_iff in OK; tauto.
  - rewrite Nat.sub_0_r, <- tile_length, E. apply received_le_tile. intros l. rewrite pulls_source; auto.
Qed.

Lemma received_elements k L L' x : layout_ok L = true -> same_shape (dims L) (dims L') -> pulls k = true ->
  valid (mesh_of L') x -> received k L L' x <= missing_elements L L'.
Proof.
  intros OK SH PK Hx. unfold missing_elements. destruct (comparable L L') eqn:C.
  - apply received_comparable; auto. unfold comparable in C. rewrite !andb_true_iff, same_mesh_ok in C.
    destruct C as [[E _] _]. rewrite E; auto.
  - destruct (negb (same_mesh L L') || (even_layout L && even_layout L')) eqn:B.
    + etransitivity; [apply received_le_tile; intros l; rewrite pulls_source; auto|apply tile_length_le].
    + apply orb_false_iff in B as [B _]. apply negb_false_iff in B. pose proof B as E. apply same_mesh_ok in E.
      transitivity (foreign_at L L' x).
      * apply received_foreign_at; auto. rewrite E; auto.
      * apply le_max, device_valid; auto.
Qed.

Lemma foreign_elements_le L L' : layout_ok L = true -> layout_ok L' = true -> missing_elements L L' <= tile_elements L'.
Proof.
  intros OK OK'. unfold missing_elements. destruct (comparable L L'); [lia|].
  destruct (negb (same_mesh L L') || (even_layout L && even_layout L')) eqn:B; auto.
  apply orb_false_iff in B as [B _]. apply negb_false_iff in B. apply same_mesh_ok in B.
  assert (G : forall l, (forall x, In x l -> valid (mesh_of L') x) ->
    fold_right Nat.max 0 (map (foreign_at L L') l) <= tile_elements L').
  { induction l as [|x l IH]; simpl; intros H; [lia|].
    assert (foreign_at L L' x <= tile_elements L').
    { unfold foreign_at. rewrite B, <- tile_length. pose proof (tile_length_le (mesh_of L') (dims L') x).
      unfold tile_elements. lia. }
    specialize (IH (fun y I => H y (or_intror I))). lia. }
  apply G. intros x. apply device_valid.
Qed.

(* nested tiles: the smaller extents are the refined layout's *)
Lemma splits_smaller m d e : mesh_ok m = true -> splits m d e = true -> tile_extent m e <= tile_extent m d.
Proof.
  intros Hm P. apply splits_ok in P as [B [_ ET]]. pose proof (mesh_ok_prodsz m B Hm).
  pose proof (tile_le_extent m e Hm). nia.
Qed.
Lemma splits_min m t t' : mesh_ok m = true -> forall2b (splits m) t t' = true ->
  min_size m t t' = size m t' /\ size m t' <= size m t.
Proof.
  intros Hm. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; simpl; intros P; try discriminate; auto.
  apply andb_true_iff in P as [P1 P2]. destruct (IH t' P2) as [H1 H2]. apply splits_smaller in P1; auto.
  rewrite H1, Nat.min_r by auto. split; auto. nia.
Qed.
Lemma joins_min m t t' : mesh_ok m = true -> forall2b (joins m) t t' = true ->
  min_size m t t' = size m t /\ size m t <= size m t'.
Proof.
  intros Hm. revert t'; induction t as [|d t IH]; destruct t' as [|e t']; simpl; intros P; try discriminate; auto.
  apply andb_true_iff in P as [P1 P2]. destruct (IH t' P2) as [H1 H2]. apply splits_smaller in P1; auto.
  rewrite H1, Nat.min_l by auto. split; auto. nia.
Qed.

(* a group has one member that is x *)
Lemma others_group L L' x : layout_ok L = true -> same_mesh L L' = true -> valid (mesh_of L) x ->
  others L L' x (group L L' x) <= prodsz (mesh_of L) (reduced L L') - 1.
Proof.
  intros OK EM Hx. apply layout_ok_iff in OK as [Hm W]. destruct (wf_unreduced _ W) as [ND [HL _]].
  unfold others, group. rewrite EM. simpl. rewrite filter_map_length.
  set (R := reduced L L') in *. set (m := mesh_of L) in *.
  set (p := fun w => same_list (setd m R w x) x).
  pose proof (filter_split p (seq 0 (prodsz m R))) as SP. rewrite seq_length in SP. unfold p in SP at 2.
  assert (1 <= length (filter p (seq 0 (prodsz m R)))); [|lia].
  assert (I : In (ev m R x) (filter p (seq 0 (prodsz m R)))).
  { apply filter_In. split. { apply in_seq. pose proof (ev_lt m R x Hx). lia. }
    apply same_list_ok, setd_same; auto. { apply nodup_minus; auto. }
    intros a Ha. apply in_minus in Ha. apply HL; tauto. }
  destruct (filter p (seq 0 (prodsz m R))); [destruct I|simpl; lia].
Qed.

(* dealing the elements of a box out in turn *)
Lemma seq_plus b k : map (fun n => b + n) (seq 0 k) = seq b k.
Proof.
  assert (G : forall z, map (fun n => b + n) (seq z k) = seq (b + z) k).
  { induction k; intros z; simpl; auto. rewrite IHk. f_equal. f_equal. lia. }
  rewrite G. f_equal. lia.
Qed.
Lemma flat_box m t : map (flat m t) (box (extents_of m t)) = seq 0 (size m t).
Proof.
  induction t as [|d t IH]; auto. simpl.
  assert (G : forall c s, map (flat m (d :: t)) (flat_map (fun i => map (cons i) (box (extents_of m t))) (seq s c))
              = seq (s * size m t) (c * size m t)).
  { induction c; intros s; auto. simpl. rewrite map_app, IHc. rewrite (seq_app (size m t) (c * size m t)).
    f_equal; [|f_equal; lia]. rewrite map_map. simpl.
    rewrite <- (map_map (flat m t) (fun n => s * size m t + n)), IH. apply seq_plus. }
  rewrite G. reflexivity.
Qed.
(* every residue turns up at least n / g times below n *)
Lemma count_turn g r n : r < g -> n / g <= count (fun j => j mod g =? r) n.
Proof.
  intros Hr. unfold count. rewrite <- (seq_length (n / g) 0).
  rewrite <- (map_length (fun q => q * g + r)). apply NoDup_incl_length.
  - apply FinFun.Injective_map_NoDup; [|apply seq_NoDup]. intros a b E. nia.
  - intros j Hj. apply in_map_iff in Hj as [q [<- Hq]]. apply in_seq in Hq. apply filter_In.
    pose proof (Nat.div_mod n g ltac:(lia)). split. { apply in_seq. nia. }
    apply Nat.eqb_eq. rewrite Nat.add_comm, Nat.mod_add by lia. apply Nat.mod_small; auto.
Qed.
Lemma count_double g r n : count (fun j => j mod g =? r) (2 * n) =
  sumf (fun i => (if r =? (2 * i) mod g then 1 else 0) + (if r =? (2 * i + 1) mod g then 1 else 0)) (seq 0 n).
Proof.
  induction n; auto. rewrite seq_S. replace (2 * S n) with (S (S (2 * n))) by lia. unfold count in *.
  rewrite !seq_S, !filter_app, !app_length, IHn.
  assert (SA : forall (f : nat -> nat) a b, sumf f (a ++ b) = sumf f a + sumf f b)
    by (intros f a b; induction a; simpl; lia).
  rewrite SA. simpl. rewrite !(Nat.eqb_sym r). replace (S (n + (n + 0))) with (n + (n + 0) + 1) by lia.
  destruct ((n + (n + 0)) mod g =? r), ((n + (n + 0) + 1) mod g =? r); simpl; lia.
Qed.
Lemma sumf_map {A B} (f : B -> nat) (h : A -> B) l : sumf f (map h l) = sumf (fun a => f (h a)) l.
Proof. induction l; simpl; auto. Qed.
Lemma sumf_filter_le {A} (f : A -> nat) p l : sumf f (filter p l) <= sumf f l.
Proof. induction l; simpl; auto. destruct (p a); simpl; lia. Qed.

(* No device receives more than the closed form of the step. *)
Theorem received_certified L k L' x : layout_ok L = true -> type_step L k L' = true -> valid (mesh_of L') x ->
  received k L L' x <= certified k L L'.
Proof.
  intros OK T Hx. apply type_step_inv in T as [OK' [SH P]].
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  destruct k; simpl in P; rewrite ?andb_true_iff in P.
  - (* a slice finds everything at home *)
    destruct P as [[EM EU] P]. pose proof EM as E. apply same_mesh_ok in E. apply same_unreduced_ok in EU.
    unfold received. simpl certified. transitivity (sumf (fun _ => 0) (tile (mesh_of L') (dims L') x)).
    + apply sumf_le. intros l Hl. apply in_tile_list in Hl. apply tile_holds in Hl as [Hh _].
      rewrite pulls_source by auto. rewrite <- E in *.
      rewrite pull_home; auto; [|congruence|eapply splits_holds; eauto].
      unfold others. simpl. rewrite EM, (proj2 (same_list_ok x x) eq_refl). auto.
    + rewrite sumf_const. lia.
  - apply received_elements; auto.
  - apply received_elements; auto.
  - simpl certified. etransitivity; [apply received_le_tile; auto|apply tile_length_le].
  - destruct P as [[[EM _] _] _]. pose proof EM as E. apply same_mesh_ok in E.
    unfold received. simpl sources. rewrite sumf_const. rewrite Nat.mul_comm. simpl certified.
    apply Nat.mul_le_mono; [|apply tile_length_le]. apply others_group; auto. rewrite E; auto.
  - destruct P as [[EM _] P]. pose proof EM as E. apply same_mesh_ok in E.
    assert (ED : dims L = dims L').
    { clear - SH P. revert SH P. generalize (dims L') as t'. induction (dims L) as [|d t IH]; destruct t' as [|e t'];
        simpl; intros SH P; try discriminate; auto.
      unfold same_shape in SH; simpl in SH. injection SH as E1 E2. apply andb_true_iff in P as [P1 P2].
      apply same_list_ok in P1. rewrite (IH t' E2 P2). destruct d, e; simpl in *; subst; auto. }
    set (m := mesh_of L) in *. set (g := group_size L L').
    assert (Hg : 0 < g) by (apply mesh_ok_prodsz; auto). rewrite <- E in Hx.
    set (r := ev m (reduced L L') x). assert (Hr : r < g) by (apply ev_lt; auto).
    assert (RM : forall l, In l (tile m (dims L) x) -> rem m (dims L) (gidx m (dims L) x l) = l).
    { intros l Hl. apply in_tile_list in Hl. apply tile_holds; auto. }
    set (ends := fun i => (if r =? (2 * i) mod g then 1 else 0) + (if r =? (2 * i + 1) mod g then 1 else 0)).
    assert (E2 : forall i, ends i <= 2).
    { intros i. unfold ends. destruct (r =? _), (r =? _); simpl; lia. }
    unfold received, certified. rewrite <- E, <- ED. fold m g.
    transitivity (sumf (fun l => 2 - ends (flat m (dims L) l)) (tile m (dims L) x)).
    { apply sumf_le. intros l Hl. unfold sources. rewrite <- E, <- ED. fold m.
      rewrite (RM l Hl). unfold others. etransitivity; [apply filter_length_le|].
      unfold first, last, ends. fold m g r. rewrite app_length.
      destruct (r =? _), (r =? _); simpl; lia. }
    unfold tile. etransitivity; [apply sumf_filter_le|].
    rewrite <- (sumf_map (fun i => 2 - ends i) (flat m (dims L))), flat_box.
    unfold tile_elements. fold m. set (T := size m (dims L)).
    pose proof (count_turn g r (2 * T) Hr) as CT. rewrite count_double in CT. fold ends in CT.
    assert (SP : sumf (fun i => 2 - ends i) (seq 0 T) + sumf ends (seq 0 T) = T * 2).
    { clear CT. rewrite <- (seq_length T 0) at 3. induction (seq 0 T) as [|a s IH]; auto. pose proof (E2 a). cbn
      [sumf length]. lia. }
    lia.
  - unfold received. simpl sources. unfold others. simpl. rewrite sumf_const. lia.
  - apply received_elements; auto.
Qed.
