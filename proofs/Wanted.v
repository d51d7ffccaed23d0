(* An exchange serves any wanted elements, not only tiles: halos, boxes that ranks name, selections.
   pulled x W       the elements of W that an exchange brings to x: x does not hold them
   wanted_sound     the device that x pulls an element from holds its value
   wanted_optimal   no protocol brings x the elements of W for less
   cells_optimal    the same for cells, several of which may hold one element: a periodic halo
   wide_received    a tile and its halo: as many elements come as the wide box has beyond the tile *)
From Coq Require Import List Arith Lia PeanoNat Bool FinFun.
Import ListNotations.
From Reshard Require Import Mesh Layout Step Meaning Simulate Received Check Protocol Bound.

Section Wanted.
Variables L L' : layout.
Hypothesis OK : layout_ok L = true.
Hypothesis OK' : layout_ok L' = true.
Hypothesis SH : same_shape (dims L) (dims L').
Hypothesis SU : summand_count L = summand_count L'.
Hypothesis EM : same_mesh L L' = true.

(* Element g of the summand that x holds after. *)
Definition named (x : dev) (g : idx) : idx := ev (mesh_of L') (unreduced L') x :: g.
Definition pulled (x : dev) (W : list idx) : list idx :=
  filter (fun g => negb (same_list (pull_dev L L' x g) x)) W.

Lemma pull_here x g : valid (mesh_of L') x -> in_shape (dims L') g ->
  pull_dev L L' x g = x <-> has L x (named x g).
Proof.
  intros Hx Hs. pose proof EM as E. apply same_mesh_ok in E.
  pose proof OK as OKi. apply layout_ok_iff in OKi as [Hm W].
  destruct (pull_dev_holds L L' x g OK OK' SH SU Hx Hs) as [V1 [H1 E1]].
  set (y := pull_dev L L' x g) in *. unfold named, has. split.
  - intros EY. apply holds_full; auto. rewrite EY in *. split; [|split; auto]. rewrite SU. apply ev_lt; auto.
  - intros H. unfold y, pull_dev. rewrite EM. apply setdims_home; auto. rewrite E; auto.
Qed.

Theorem wanted_sound {V} A (S : state V) x g : denotes L A S -> valid (mesh_of L') x -> in_shape (dims L') g ->
  S (pull_dev L L' x g) (rem (mesh_of L) (dims L) g) = A (ev (mesh_of L') (unreduced L') x) g.
Proof.
  intros D Hx Hs. destruct (pull_dev_holds L L' x g OK OK' SH SU Hx Hs) as [V1 [H1 E1]].
  rewrite (denotes_holds L A S _ _ OK D V1 H1), E1. reflexivity.
Qed.

Theorem wanted_optimal x W ts H' : valid (mesh_of L') x -> NoDup W -> (forall g, In g W -> in_shape (dims L') g) ->
  protocol dev idx (has L) ts H' -> (forall g, In g W -> H' x (named x g)) ->
  length (pulled x W) <= recv dev idx dev_eq x ts.
Proof.
  intros Hx ND HS P HT. rewrite <- (map_length (named x)). eapply recv_lower_bound; eauto.
  - apply Injective_map_NoDup; [|apply NoDup_filter; auto]. intros a b E; injection E; auto.
  - intros e He. apply in_map_iff in He as [g [<- Hg]]. apply filter_In in Hg as [Hg Ng]. split; auto.
    intros H. apply pull_here in H; auto. rewrite H in Ng.
    rewrite (proj2 (same_list_ok x x) eq_refl) in Ng. discriminate.
Qed.

Definition idx_dec : forall a b : idx, {a = b} + {a <> b} := list_eq_dec Nat.eq_dec.

(* Each cell holds an element.  An element comes once, whatever the number of its cells. *)
Theorem cells_optimal {C} (element_of : C -> idx) x (cs : list C) ts H' : valid (mesh_of L') x ->
  (forall c, In c cs -> in_shape (dims L') (element_of c)) ->
  protocol dev idx (has L) ts H' -> (forall c, In c cs -> H' x (named x (element_of c))) ->
  length (pulled x (nodup idx_dec (map element_of cs))) <= recv dev idx dev_eq x ts.
Proof.
  intros Hx HS P HT. apply wanted_optimal with (H' := H'); auto using NoDup_nodup;
    intros g Hg; apply nodup_In, in_map_iff in Hg as [c [<- Hc]]; auto.
Qed.

(* Held and wanted sets that are boxes: what comes is counted by sides. *)
Definition inside_box (a : list (nat * nat)) (g : idx) : bool :=
  forall2b (fun p q => (fst p <=? fst q) && (fst q <? snd p)) a (map (fun i => (i, i)) g).
Fixpoint cells (a : list (nat * nat)) : list idx :=
  match a with [] => [[]] | p :: a => flat_map (fun i => map (cons i) (cells a)) (seq (fst p) (snd p - fst p)) end.
Fixpoint volume (a : list (nat * nat)) : nat := match a with [] => 1 | p :: a => (snd p - fst p) * volume a end.
Fixpoint within_box (own wide : list (nat * nat)) : Prop :=
  match own, wide with
  | [], [] => True
  | p :: own, q :: wide => fst q <= fst p /\ snd p <= snd q /\ within_box own wide
  | _, _ => False
  end.

Lemma prefixed_length (c : list idx) l : length (flat_map (fun i => map (cons i) c) l) = length l * length c.
Proof. induction l; simpl; auto. rewrite app_length, map_length, IHl. auto. Qed.
Lemma cells_length a : length (cells a) = volume a.
Proof. induction a as [|[b e] a IH]; simpl; auto. rewrite prefixed_length, seq_length, IH. auto. Qed.

Lemma filter_cons_cells (f : nat -> bool) (h : idx -> bool) l a :
  length (filter (fun g => match g with [] => false | i :: g => f i && h g end) (flat_map (fun i => map (cons i) (cells a)) l))
  = length (filter f l) * length (filter h (cells a)).
Proof.
  induction l as [|i l IH]; simpl; auto. rewrite filter_app, app_length, IH. clear IH.
  assert (E : length (filter (fun g => match g with [] => false | i :: g => f i && h g end) (map (cons i) (cells a)))
              = if f i then length (filter h (cells a)) else 0).
  { induction (cells a) as [|g gs IH]; simpl. { destruct (f i); auto. }
    destruct (f i); simpl in *; [destruct (h g); simpl; rewrite IH; auto|exact IH]. }
  rewrite E. destruct (f i); simpl; lia.
Qed.

Lemma filter_interval b e lo n : lo <= b -> e <= lo + n ->
  length (filter (fun i => (b <=? i) && (i <? e)) (seq lo n)) = e - b.
Proof.
  revert lo b e. induction n as [|n IH]; simpl; intros lo b e H1 H2; [lia|].
  destruct (Nat.leb_spec b lo), (Nat.ltb_spec lo e); simpl.
  - assert (b = lo) by lia. subst. replace (e - lo) with (S (e - S lo)) by lia. f_equal.
    rewrite <- (IH (S lo) (S lo) e) by lia.
    f_equal. apply filter_ext_in. intros i Hi. apply in_seq in Hi.
    destruct (Nat.leb_spec lo i), (Nat.leb_spec (S lo) i); try lia; auto.
  - replace (e - b) with 0 by lia. apply length_zero_iff_nil.
    replace (filter _ _) with (filter (fun _ : nat => false) (seq (S lo) n)).
    + induction (seq (S lo) n); simpl; auto.
    + apply filter_ext_in. intros i Hi. apply in_seq in Hi.
      destruct (Nat.ltb_spec i e); [lia|]. rewrite andb_false_r. auto.
  - apply IH; lia.
  - replace (e - b) with 0 by lia. apply length_zero_iff_nil.
    replace (filter _ _) with (filter (fun _ : nat => false) (seq (S lo) n)).
    + induction (seq (S lo) n); simpl; auto.
    + apply filter_ext_in. intros i Hi. apply in_seq in Hi.
      destruct (Nat.ltb_spec i e); [lia|]. rewrite andb_false_r. auto.
Qed.

Lemma held_cells own wide : within_box own wide -> length (filter (inside_box own) (cells wide)) = volume own.
Proof.
  revert wide. induction own as [|[b e] own IH]; destruct wide as [|[lo hi] wide]; simpl; try tauto.
  intros [H1 [H2 H3]]. rewrite <- (IH _ H3).
  rewrite <- (filter_interval b e lo (hi - lo)) at 1 by lia.
  rewrite <- filter_cons_cells. f_equal. apply filter_ext_in. intros g Hg.
  apply in_flat_map in Hg as [i [_ Hg]]. apply in_map_iff in Hg as [g' [<- _]]. reflexivity.
Qed.

Lemma filter_negb_length {A} (f : A -> bool) l : length (filter (fun a => negb (f a)) l) = length l - length (filter f l).
Proof.
  induction l as [|a l IH]; [reflexivity|]. pose proof (filter_length_le f l) as B.
  cbn [filter]. destruct (f a); cbn [negb length]; rewrite IH; lia.
Qed.

(* x holds the cells `own` of the cells `wide` that it wants.  It receives the rest. *)
Theorem wide_received x own wide : valid (mesh_of L') x -> within_box own wide ->
  (forall g, In g (cells wide) -> in_shape (dims L') g) ->
  (forall g, In g (cells wide) -> (has L x (named x g) <-> inside_box own g = true)) ->
  length (pulled x (cells wide)) = volume wide - volume own.
Proof.
  intros Hx HW HS HH. rewrite <- (held_cells own wide HW), <- (cells_length wide), <- filter_negb_length.
  unfold pulled. f_equal. apply filter_ext_in. intros g Hg. f_equal.
  destruct (inside_box own g) eqn:I.
  - apply same_list_ok. apply pull_here; auto. apply HH; auto.
  - destruct (same_list (pull_dev L L' x g) x) eqn:S; auto. apply same_list_ok in S.
    apply pull_here in S; auto. apply HH in S; auto. congruence.
Qed.
End Wanted.
