(* A mesh is the list of the sizes of its atoms, most major first; a device is the list of its digits.
   This file: mixed-radix reading (`ev`) and writing (`setd`) of the digits of a device. *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.

Fixpoint upd {A} (i : nat) (v : A) (l : list A) : list A :=
  match l, i with
  | [], _ => []
  | _ :: t, 0 => v :: t
  | h :: t, S i => h :: upd i v t
  end.

Lemma upd_length {A} i (v : A) l : length (upd i v l) = length l.
Proof. revert i; induction l; destruct i; simpl; auto. Qed.

Lemma nth_upd_eq {A} i (v : A) l d : i < length l -> nth i (upd i v l) d = v.
Proof. revert i; induction l; destruct i; simpl; intros; try lia; auto. apply IHl; lia. Qed.

Lemma nth_upd_neq {A} i j (v : A) l d : i <> j -> nth j (upd i v l) d = nth j l d.
Proof.
  revert i j; induction l; destruct i, j; simpl; intros; auto; try lia.
Qed.

Lemma upd_same {A} i (v : A) l d : nth i l d = v -> upd i v l = l.
Proof.
  revert i; induction l; destruct i; simpl; intros; subst; auto. f_equal; auto.
Qed.

Definition mesh := list nat.
Definition dev := list nat.
Definition sz (m : mesh) (a : nat) := nth a m 1.
Definition valid (m : mesh) (x : dev) :=
  length x = length m /\ forall a, nth a x 0 < sz m a.

Fixpoint prodsz (m : mesh) (l : list nat) : nat :=
  match l with [] => 1 | a :: r => sz m a * prodsz m r end.

(* value of the digits of x at the atoms l, major first *)
Fixpoint ev (m : mesh) (l : list nat) (x : dev) : nat :=
  match l with [] => 0 | a :: r => nth a x 0 * prodsz m r + ev m r x end.

(* overwrite the digits of x at the atoms l by the digits of v *)
Fixpoint setd (m : mesh) (l : list nat) (v : nat) (x : dev) : dev :=
  match l with
  | [] => x
  | a :: r => setd m r (v mod prodsz m r) (upd a (v / prodsz m r) x)
  end.

Lemma prodsz_app m l1 l2 : prodsz m (l1 ++ l2) = prodsz m l1 * prodsz m l2.
Proof. induction l1; simpl; rewrite ?IHl1; lia. Qed.

Lemma ev_app m l1 l2 x : ev m (l1 ++ l2) x = ev m l1 x * prodsz m l2 + ev m l2 x.
Proof. induction l1; simpl; rewrite ?IHl1, ?prodsz_app; lia. Qed.

Lemma ev_lt m l x : valid m x -> ev m l x < prodsz m l.
Proof.
  intros [_ H]; induction l; simpl; [lia|].
  specialize (H a). nia.
Qed.

Lemma prodsz_pos m l x : valid m x -> 0 < prodsz m l.
Proof. intros H; pose proof (ev_lt m l x H); lia. Qed.

Lemma ev_ext m l x y : (forall a, In a l -> nth a x 0 = nth a y 0) -> ev m l x = ev m l y.
Proof.
  induction l as [|a l IH]; simpl; intros H; [reflexivity|].
  rewrite (H a), IH; auto.
Qed.

Lemma setd_length m l v x : length (setd m l v x) = length x.
Proof. revert v x; induction l; simpl; intros; auto. rewrite IHl, upd_length; auto. Qed.

Lemma setd_other m l v x a : ~ In a l -> nth a (setd m l v x) 0 = nth a x 0.
Proof.
  revert v x; induction l; simpl; intros; auto.
  rewrite IHl by tauto. apply nth_upd_neq. tauto.
Qed.

Lemma ev_setd m l v x :
  NoDup l -> (forall a, In a l -> a < length x) -> v < prodsz m l ->
  ev m l (setd m l v x) = v.
Proof.
  revert v x; induction l; simpl; intros v x ND HL Hv; [lia|].
  inversion ND; subst.
  assert (HP : prodsz m l <> 0) by nia.
  rewrite setd_other by auto.
  rewrite nth_upd_eq by auto.
  rewrite IHl; auto.
  - rewrite (Nat.div_mod v (prodsz m l)) at 3 by auto. lia.
  - intros; rewrite upd_length; auto.
  - apply Nat.mod_upper_bound; auto.
Qed.

Lemma setd_valid m l v x :
  valid m x -> v < prodsz m l -> valid m (setd m l v x).
Proof.
  revert v x; induction l; simpl; intros v x Hx Hv; auto.
  assert (HP : prodsz m l <> 0) by nia.
  apply IHl.
  - destruct Hx as [HL HB]. split. { rewrite upd_length; auto. }
    intros b. destruct (Nat.eq_dec a b) as [->|N].
    + destruct (Nat.lt_ge_cases b (length x)).
      * rewrite nth_upd_eq by auto. apply Nat.div_lt_upper_bound; lia.
      * rewrite nth_overflow by (rewrite upd_length; auto).
        specialize (HB b). lia.
    + rewrite nth_upd_neq by auto. auto.
  - apply Nat.mod_upper_bound; auto.
Qed.

Lemma ev_setd_disj m l l' v x :
  (forall a, In a l -> ~ In a l') -> ev m l (setd m l' v x) = ev m l x.
Proof. intros H; apply ev_ext; intros; apply setd_other; auto. Qed.

(* uniqueness of digits *)
Lemma ev_inj m l x y :
  valid m x -> valid m y -> ev m l x = ev m l y ->
  forall a, In a l -> nth a x 0 = nth a y 0.
Proof.
  intros Hx Hy; induction l as [|b l IH]; simpl; intros E a HI; [tauto|].
  pose proof (ev_lt m l x Hx) as Lx. pose proof (ev_lt m l y Hy) as Ly.
  assert (nth b x 0 = nth b y 0 /\ ev m l x = ev m l y) as [E1 E2].
  { assert (nth b x 0 = nth b y 0) by nia. split; nia. }
  destruct HI as [<-|HI]; auto.
Qed.

Lemma setd_same m l x :
  valid m x -> NoDup l -> (forall a, In a l -> a < length m) ->
  setd m l (ev m l x) x = x.
Proof.
  intros Hx ND HL.
  assert (HV : valid m (setd m l (ev m l x) x)) by (apply setd_valid; auto; apply ev_lt; auto).
  apply nth_ext with 0 0. { apply setd_length. }
  intros a _.
  destruct (in_dec Nat.eq_dec a l) as [I|I].
  - apply (ev_inj m l); auto. apply ev_setd; auto.
    + destruct Hx as [E _]; rewrite E; auto.
    + apply ev_lt; auto.
  - apply setd_other; auto.
Qed.

(* Every atom has a positive size: the mesh has a device. *)
Definition mesh_ok (m : mesh) : bool := forallb (fun s => 0 <? s) m.

Lemma mesh_ok_sz m a : mesh_ok m = true -> 0 < sz m a.
Proof.
  unfold mesh_ok, sz. rewrite forallb_forall. intros H.
  destruct (Nat.lt_ge_cases a (length m)) as [L|L].
  - apply Nat.ltb_lt, H, nth_In; auto.
  - rewrite nth_overflow; auto.
Qed.

Lemma mesh_ok_prodsz m l : mesh_ok m = true -> 0 < prodsz m l.
Proof. intros H; induction l; simpl; [lia|]. pose proof (mesh_ok_sz m a H). nia. Qed.

Lemma valid_mesh_ok m x : valid m x -> mesh_ok m = true.
Proof.
  intros [L B]. unfold mesh_ok. apply forallb_forall. intros s Hs. apply Nat.ltb_lt.
  apply (In_nth _ _ 1) in Hs as [a [Ha <-]]. specialize (B a). unfold sz in B. lia.
Qed.

(* The device with zero digits only. *)
Definition zero_dev (m : mesh) : dev := map (fun _ => 0) m.
Lemma zero_nth m a : nth a (zero_dev m) 0 = 0.
Proof. unfold zero_dev. revert a; induction m as [|k m IH]; intros [|a]; simpl; auto. Qed.
Lemma zero_valid m : mesh_ok m = true -> valid m (zero_dev m).
Proof.
  intros H. split. { unfold zero_dev; apply map_length. } intros a. rewrite zero_nth.
  apply mesh_ok_sz; auto.
Qed.
Lemma ev_zero m l : ev m l (zero_dev m) = 0.
Proof. induction l; simpl; auto. rewrite zero_nth, IHl; lia. Qed.

Lemma upd_comm {A} a b (v w : A) l : a <> b -> upd a v (upd b w l) = upd b w (upd a v l).
Proof. revert a b; induction l as [|c l IH]; intros [|a] [|b] N; simpl; auto; try lia. f_equal; auto. Qed.
Lemma upd_setd m a w U v x : ~ In a U -> upd a w (setd m U v x) = setd m U v (upd a w x).
Proof.
  revert v x; induction U as [|b U IH]; simpl; intros v x H; auto.
  rewrite IH by tauto. rewrite upd_comm by (intros ->; tauto). reflexivity.
Qed.
Lemma setd_setd m B U w v x : (forall a, In a B -> ~ In a U) ->
  setd m B w (setd m U v x) = setd m U v (setd m B w x).
Proof.
  revert w x; induction B as [|b B IH]; simpl; intros w x H; auto.
  rewrite upd_setd by (apply H; auto). apply IH. intros; apply H; auto.
Qed.

(* The written digits do not depend on the old ones. *)
Lemma setd_in m l v x y a : length x = length y -> In a l ->
  nth a (setd m l v x) 0 = nth a (setd m l v y) 0.
Proof.
  revert v x y; induction l as [|b l IH]; simpl; intros v x y L I; [tauto|].
  destruct (in_dec Nat.eq_dec a l) as [J|J].
  - apply IH; auto. rewrite !upd_length; auto.
  - destruct I as [->|I]; [|tauto]. rewrite !setd_other by auto.
    destruct (Nat.lt_ge_cases a (length x)).
    + rewrite !nth_upd_eq; auto; lia.
    + rewrite !nth_overflow; auto; rewrite upd_length; lia.
Qed.

Lemma setd_twice m l v w x : setd m l v (setd m l w x) = setd m l v x.
Proof.
  apply nth_ext with 0 0. { rewrite !setd_length; auto. }
  intros a _. destruct (in_dec Nat.eq_dec a l) as [I|I].
  - apply setd_in; auto. apply setd_length.
  - rewrite !setd_other; auto.
Qed.

(* Two devices with the same digits are the same device. *)
Lemma dev_ext m x y : valid m x -> valid m y ->
  (forall a, a < length m -> nth a x 0 = nth a y 0) -> x = y.
Proof.
  intros [Lx _] [Ly _] H. apply nth_ext with 0 0; [lia|]. intros a Ha. apply H. lia.
Qed.

Definition dev_eq : forall x y : dev, {x = y} + {x <> y} := list_eq_dec Nat.eq_dec.
