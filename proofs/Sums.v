(* Lower bounds where sums stay, or arrive: c summands of an element before, m after, each of these wanted on some
   devices.  Which summand goes into which is the protocol's choice, the same for all values, so every summand before
   has one after whose devices have all heard of it.  As in Reduce.v nothing is assumed about what a message holds.
   parts_lower_bound    some device receives at least n (c - m) / devices
   once_lower_bound     where each is wanted on one device, and k stay for nothing: at least n (c - k) / (2 devices)
   joined_lower_bound   where one after is made of a before, and wanted on r devices: at least n (a + r - 2) / devices
   copies_lower_bound   where r devices want a summand that they do not have: at least n r / devices
   several_lower_bound  where each after is wanted on r devices, of which at most k hold a given one of what it is made
                        of: at least n (c + r - k - 1) / devices
   ring                 the costs of several after do not add up: one message may serve them all *)
From Coq Require Import List Arith Lia PeanoNat Bool.
Import ListNotations.
From Reshard Require Import Received Protocol Schedule Reduce.

Section Sums.
Variables Dv El : Type.
Variable deq : forall a b : Dv, {a = b} + {a <> b}.
Variable eeq : forall a b : El, {a = b} + {a <> b}.
Notation knowledge := (knowledge Dv).
Notation learn := (learn Dv El deq eeq).
Notation about := (about Dv El eeq).
Notation at_most_one := (at_most_one Dv).
Notation recv := (recv Dv El deq).
Notation from := (from Dv El).
Notation to := (to Dv El).

Definition mem (i : nat) (l : list nat) : bool := existsb (Nat.eqb i) l.
Lemma mem_in i l : mem i l = true <-> In i l.
Proof.
  unfold mem. rewrite existsb_exists. split.
  - intros [x [H E]]. apply Nat.eqb_eq in E. subst. auto.
  - intros H. exists i. split; auto. apply Nat.eqb_refl.
Qed.
Lemma only_one (K : knowledge) d i i' : at_most_one K -> In i (K d) -> In i' (K d) -> i = i'.
Proof.
  intros A H H'. specialize (A d).
  destruct (K d) as [|s [|s' k]]; simpl in *; try lia; destruct H, H'; try tauto; congruence.
Qed.
Lemma filter_parts (f : nat -> bool) l : length (filter f l) + length (filter (fun i => negb (f i)) l) = length l.
Proof. induction l as [|a l IH]; simpl; auto. destruct (f a); simpl; lia. Qed.
Lemma nodup_map_in {A} (f : nat -> A) l : NoDup l -> (forall i i', In i l -> In i' l -> f i = f i' -> i = i') ->
  NoDup (map f l).
Proof.
  intros ND H. induction ND as [|a l N ND IH]; simpl; constructor.
  - intros I. apply in_map_iff in I as [b [E I]]. apply N. rewrite (H a b); simpl; auto.
  - apply IH. intros i i' Hi Hi'. apply H; simpl; auto.
Qed.

(* Each summand that reaches a device which did not hold it was sent by one that did, and nobody holds two. *)
Lemma sent_once e ts K l : at_most_one K -> NoDup l ->
  (forall i, In i l -> exists d, In i (learn e K ts d) /\ ~ In i (K d)) -> length l <= length (about e ts).
Proof.
  intros A ND H. transitivity (length (flat_map (fun t => K (from t)) (about e ts))).
  - apply NoDup_incl_length; auto. intros i Hi. destruct (H i Hi) as [d [L N]].
    destruct (learn_origin Dv El deq eeq e ts K d i L) as [|[t [H1 H2]]]; [tauto|].
    apply in_flat_map. exists t; auto.
  - induction (about e ts) as [|t u IH]; simpl; auto. rewrite app_length. pose proof (A (from t)). lia.
Qed.

(* Each device that gets to know something receives. *)
Lemma received_once e ts K ds : NoDup ds ->
  (forall d, In d ds -> exists i, In i (learn e K ts d) /\ ~ In i (K d)) -> length ds <= length (about e ts).
Proof.
  intros ND H. rewrite <- (map_length to (about e ts)). apply NoDup_incl_length; auto. intros d Hd.
  destruct (in_dec deq d (map to (about e ts))) as [I|I]; auto. exfalso. destruct (H d Hd) as [i [L N]].
  rewrite learn_receives in L by auto. auto.
Qed.

(* One element: summand i of c goes into `goes i` of m, which `copies` want. *)
Variables (c m : nat) (goes : nat -> nat) (copies : nat -> list Dv).
Definition delivers (e : El) (K : knowledge) (ts : list (Protocol.transfer Dv El)) : Prop :=
  forall i, i < c -> goes i < m /\ copies (goes i) <> [] /\ forall d, In d (copies (goes i)) -> In i (learn e K ts d).

(* it is where one of these wants it from the start *)
Definition stays (K : knowledge) (i : nat) : bool :=
  match copies (goes i) with [] => false | d :: _ => mem i (K d) end.

Lemma moved_sent e ts K : at_most_one K -> delivers e K ts ->
  length (filter (fun i => negb (stays K i)) (seq 0 c)) <= length (about e ts).
Proof.
  intros A D. apply (sent_once e ts K); auto. { apply NoDup_filter, seq_NoDup. }
  intros i Hi. apply filter_In in Hi as [Hi S]. apply in_seq in Hi. destruct (D i ltac:(lia)) as [_ [NE L]].
  unfold stays in S. destruct (copies (goes i)) as [|d ds]; [congruence|]. exists d. split. { apply L; simpl; auto. }
  intros I. apply mem_in in I. rewrite I in S. discriminate.
Qed.

Lemma stay_apart K i i' : at_most_one K -> stays K i = true -> stays K i' = true -> goes i = goes i' -> i = i'.
Proof.
  intros A H H' E. unfold stays in *. rewrite <- E in H'. destruct (copies (goes i)) as [|d ds]; [discriminate|].
  apply mem_in in H, H'. eapply only_one; eauto.
Qed.

Lemma parts_cost e ts K : at_most_one K -> delivers e K ts -> c <= m + length (about e ts).
Proof.
  intros A D. pose proof (moved_sent e ts K A D). pose proof (filter_parts (stays K) (seq 0 c)) as P.
  rewrite seq_length in P. set (st := filter (stays K) (seq 0 c)) in *.
  assert (length st <= m); [|lia]. rewrite <- (map_length goes st), <- (seq_length m 0) at 1.
  apply NoDup_incl_length.
  - apply nodup_map_in. { apply NoDup_filter, seq_NoDup. }
    intros i i' Hi Hi' E. apply filter_In in Hi as [_ Hi], Hi' as [_ Hi']. eapply stay_apart; eauto.
  - intros j Hj. apply in_map_iff in Hj as [i [<- Hi]]. apply filter_In in Hi as [Hi _]. apply in_seq in Hi.
    apply in_seq. destruct (D i ltac:(lia)) as [G _]. lia.
Qed.

(* it stays for nothing: no other one joins it *)
Definition keeper (K : knowledge) (i : nat) : bool :=
  stays K i && forallb (fun i' => (i' =? i) || negb (goes i' =? goes i)) (seq 0 c).
Definition keepers (K : knowledge) : nat := length (filter (keeper K) (seq 0 c)).

Lemma once_cost e ts K : at_most_one K -> delivers e K ts -> c <= 2 * length (about e ts) + keepers K.
Proof.
  intros A D. pose proof (moved_sent e ts K A D) as M. pose proof (filter_parts (stays K) (seq 0 c)) as P.
  rewrite seq_length in P. set (mv := filter (fun i => negb (stays K i)) (seq 0 c)) in *.
  set (st := filter (stays K) (seq 0 c)) in *. pose proof (filter_parts (keeper K) st) as Q.
  assert (KE : length (filter (keeper K) st) <= keepers K).
  { apply NoDup_incl_length. { apply NoDup_filter, NoDup_filter, seq_NoDup. }
    intros i Hi. apply filter_In in Hi as [Hi Hk]. apply filter_In in Hi as [Hi _]. apply filter_In; auto. }
  assert (JO : length (filter (fun i => negb (keeper K i)) st) <= length mv); [|unfold keepers in *; lia].
  set (jo := filter (fun i => negb (keeper K i)) st).
  rewrite <- (map_length goes jo), <- (map_length goes mv). apply NoDup_incl_length.
  - apply nodup_map_in. { apply NoDup_filter, NoDup_filter, seq_NoDup. }
    intros i i' Hi Hi' E. apply filter_In in Hi as [Hi _], Hi' as [Hi' _].
    apply filter_In in Hi as [_ Hi], Hi' as [_ Hi']. eapply stay_apart; eauto.
  - intros j Hj. apply in_map_iff in Hj as [i [<- Hi]]. apply filter_In in Hi as [Hi NK].
    apply filter_In in Hi as [Hi S]. unfold keeper in NK. rewrite S in NK. simpl in NK. apply negb_true_iff in NK.
    assert (EX : existsb (fun i' => negb ((i' =? i) || negb (goes i' =? goes i))) (seq 0 c) = true).
    { clear - NK. induction (seq 0 c) as [|a l IH]; simpl in *; [discriminate|].
      destruct ((a =? i) || negb (goes a =? goes i)); simpl in *; auto. }
    apply existsb_exists in EX as [i' [Hi' E]]. rewrite negb_orb, negb_involutive in E.
    apply andb_true_iff in E as [NE E]. apply Nat.eqb_eq in E. apply negb_true_iff, Nat.eqb_neq in NE.
    rewrite <- E. apply in_map. apply filter_In. split; auto. apply negb_true_iff.
    destruct (stays K i') eqn:S'; auto. exfalso. apply NE. eapply stay_apart; eauto.
Qed.

(* Summands of `need` are each wanted on w devices that do not hold them.  Each is sent for the first time by one of its
   holders, who holds no other; before the last of these first times that summand was only where it was at first, so
   all who want it are served from then on. *)
Lemma needed_cost e ts K need wanted w : at_most_one K -> NoDup need -> need <> [] ->
  (forall i, In i need -> NoDup (wanted i) /\ 1 <= w <= length (wanted i) /\
    forall d, In d (wanted i) -> In i (learn e K ts d) /\ ~ In i (K d)) ->
  length need + w <= length (about e ts) + 1.
Proof.
  intros A ND NN H.
  set (sent := fun l i => existsb (fun t => mem i (K (from t))) (about e l)).
  assert (SE : forall l i, sent l i = true <-> exists t, In t (about e l) /\ In i (K (from t))).
  { intros l i. unfold sent. rewrite existsb_exists. split; intros [t [H1 H2]]; exists t; split; auto; apply mem_in; auto. }
  assert (ALL : forallb (sent ts) need = true).
  { apply forallb_forall. intros i Hi. destruct (H i Hi) as [_ [L HW]]. destruct (wanted i) as [|d ds]; [simpl in L; lia|].
    destruct (HW d (or_introl eq_refl)) as [I N]. apply SE.
    destruct (learn_origin Dv El deq eeq e ts K d i I) as [|S]; [tauto|]. exact S. }
  assert (SP : exists l t l', ts = l ++ t :: l' /\ forallb (sent l) need = false /\ forallb (sent (l ++ [t])) need = true).
  { assert (G : forall l' l, ts = l ++ l' -> forallb (sent l) need = false ->
      exists l t l', ts = l ++ t :: l' /\ forallb (sent l) need = false /\ forallb (sent (l ++ [t])) need = true).
    { induction l' as [|t l' IH]; intros l E F; [rewrite app_nil_r in E; subst; congruence|].
      destruct (forallb (sent (l ++ [t])) need) eqn:F'.
      - exists l, t, l'. auto.
      - apply (IH (l ++ [t])); auto. rewrite <- app_assoc. exact E. }
    apply (G ts []); auto. destruct need as [|i need']; [congruence|]. reflexivity. }
  destruct SP as [l [t [l' [E [F F']]]]].
  assert (EX : exists i, In i need /\ sent l i = false).
  { clear - F. induction need as [|i n IH]; simpl in *; [discriminate|]. destruct (sent l i) eqn:S; simpl in F.
    - destruct (IH F) as [j [J1 J2]]. exists j; auto.
    - exists i; auto. }
  destruct EX as [i [Hi S]]. destruct (H i Hi) as [NW [L HW]].
  assert (E1 : about e ts = about e (l ++ [t]) ++ about e l').
  { rewrite E. unfold Reduce.about. rewrite <- filter_app, <- app_assoc. reflexivity. }
  assert (C1 : length need <= length (about e (l ++ [t]))).
  { transitivity (length (flat_map (fun u => K (from u)) (about e (l ++ [t])))).
    - apply NoDup_incl_length; auto. intros j Hj. rewrite forallb_forall in F'. apply F', SE in Hj as [u [U1 U2]].
      apply in_flat_map. exists u; auto.
    - clear - A. induction (about e (l ++ [t])) as [|u us IH]; simpl; auto. rewrite app_length. pose proof (A (from u)).
      lia. }
  set (late := filter (fun d => if deq d (to t) then false else true) (wanted i)).
  assert (L2 : length (wanted i) <= 1 + length late).
  { transitivity (length (to t :: late)); auto. apply NoDup_incl_length; auto. intros d I.
    destruct (deq d (to t)) as [->|N]; [simpl; auto|]. right. apply filter_In. split; auto. destruct (deq d (to t)); tauto. }
  assert (C2 : length late <= length (about e l')).
  { apply (received_once e l' (learn e K (l ++ [t]))). { apply NoDup_filter; auto. }
    intros d I. apply filter_In in I as [I N]. destruct (HW d I) as [I1 I2]. exists i. split.
    - unfold Reduce.learn. rewrite <- fold_left_app, <- app_assoc. simpl. rewrite <- E. exact I1.
    - assert (LT : learn e K (l ++ [t]) = learn1 Dv El deq eeq e (learn e K l) t)
        by (unfold Reduce.learn; rewrite fold_left_app; reflexivity).
      intros J. rewrite LT in J. unfold learn1 in J.
      assert (J' : In i (learn e K l d)).
      { destruct (eeq (what Dv El t) e); auto. destruct (deq d (to t)); [discriminate N|auto]. }
      destruct (learn_origin Dv El deq eeq e l K d i J') as [|S']; [tauto|]. apply SE in S'. congruence. }
  rewrite E1, app_length. lia.
Qed.

Lemma several_cost e ts K r k : at_most_one K -> 1 <= c -> k < r -> delivers e K ts ->
  (forall i, i < c -> NoDup (copies (goes i)) /\ length (copies (goes i)) = r /\
    length (filter (fun d => mem i (K d)) (copies (goes i))) <= k) ->
  c + r - k - 1 <= length (about e ts).
Proof.
  intros A Hc Hk D H.
  pose proof (needed_cost e ts K (seq 0 c) (fun i => filter (fun d => negb (mem i (K d))) (copies (goes i))) (r - k))
    as B.
  rewrite seq_length in B. assert (c + (r - k) <= length (about e ts) + 1); [|lia]. apply B; auto.
  - apply seq_NoDup.
  - destruct c; [lia|discriminate].
  - intros i Hi. apply in_seq in Hi. destruct (H i ltac:(lia)) as [N [L Kp]]. split; [apply NoDup_filter; auto|].
    split.
    + pose proof (filter_split (fun d => mem i (K d)) (copies (goes i))) as S. lia.
    + intros d I. apply filter_In in I as [I M]. apply negb_true_iff in M. split; [apply D; auto; lia|].
      intros X. apply mem_in in X. congruence.
Qed.

(* Those that one summand after is made of, renamed to the first numbers. *)
Fixpoint place (l : list nat) (i : nat) : nat :=
  match l with [] => 0 | a :: l' => if i =? a then 0 else S (place l' i) end.
Definition renamed (l : list nat) (k : list nat) : list nat := map (place l) (filter (fun i => mem i l) k).

Lemma renamed_app l a b : renamed l (a ++ b) = renamed l a ++ renamed l b.
Proof. unfold renamed. rewrite filter_app, map_app. auto. Qed.
Lemma renamed_learn l e ts : forall K K' : knowledge, (forall d, K' d = renamed l (K d)) ->
  forall d, learn e K' ts d = renamed l (learn e K ts d).
Proof.
  unfold Reduce.learn. induction ts as [|t ts IH]; simpl; intros K K' H; auto. apply IH. intros d. unfold learn1.
  destruct (eeq (what Dv El t) e); auto. destruct (deq d (to t)); auto. rewrite renamed_app, !H. auto.
Qed.
Lemma place_nth l s : NoDup l -> s < length l -> place l (nth s l 0) = s.
Proof.
  intros ND. revert s. induction ND as [|a l N ND IH]; simpl; intros s H; [lia|]. destruct s as [|s].
  - rewrite Nat.eqb_refl. auto.
  - destruct (nth s l 0 =? a) eqn:E. { apply Nat.eqb_eq in E. exfalso. apply N. rewrite <- E. apply nth_In. lia. }
    rewrite IH; auto. lia.
Qed.

Lemma joined_cost e ts K l ds : at_most_one K -> NoDup l -> 2 <= length l -> NoDup ds -> ds <> [] ->
  (forall i d, In i l -> In d ds -> In i (learn e K ts d)) -> length l + length ds - 2 <= length (about e ts).
Proof.
  intros A ND L NDS NE H. apply (element_cost Dv El deq eeq (length l) e ts (fun d => renamed l (K d)) ds); auto.
  - intros d. unfold renamed. rewrite map_length. specialize (A d).
    destruct (K d) as [|s [|s' k]]; simpl in *; try lia. destruct (mem s l); simpl; lia.
  - intros d Hd. rewrite (renamed_learn l e ts K) by auto. apply complete_in. intros s Hs.
    rewrite <- (place_nth l s) by auto. apply in_map. assert (I : In (nth s l 0) l) by (apply nth_In; auto).
    apply filter_In. split; [apply H; auto|apply mem_in; auto].
Qed.

(* Some device receives at least its share of the cost of all elements. *)
Lemma busiest b ds es ts : NoDup ds -> NoDup es -> ds <> [] -> (forall t, In t ts -> In (to t) ds) ->
  (forall e, In e es -> b <= length (about e ts)) ->
  exists d, In d ds /\ length es * b <= length ds * recv d ts.
Proof.
  intros ND NE NN HT B.
  assert (S1 : length es * b <= length ts).
  { etransitivity; [|apply (about_sum Dv El eeq es ts NE)]. rewrite <- sumf_const. apply sumf_le. auto. }
  pose proof (recv_sum Dv El deq ds ts ND HT) as S2.
  assert (MX : exists d, In d ds /\ sumf (fun d => recv d ts) ds <= length ds * recv d ts).
  { clear - NN. induction ds as [|d [|d' ds] IH]; [congruence| |].
    - exists d. simpl. split; [auto|lia].
    - destruct IH as [x [I L]]; [congruence|].
      destruct (Nat.le_gt_cases (recv x ts) (recv d ts)).
      + exists d. split; [simpl; auto|]. cbn [sumf length] in *. nia.
      + exists x. split; [simpl in *; auto|]. cbn [sumf length] in *. nia. }
  destruct MX as [d [I L]]. exists d. split; auto. lia.
Qed.
End Sums.

(* The same of n elements: who starts with what and which summand goes where may differ from element to element. *)
Section Elements.
Variables Dv El : Type.
Variable deq : forall a b : Dv, {a = b} + {a <> b}.
Variable eeq : forall a b : El, {a = b} + {a <> b}.
Notation about := (about Dv El eeq).
Notation recv := (recv Dv El deq).
Variables (ds : list Dv) (es : list El) (ts : list (Protocol.transfer Dv El)) (K : El -> knowledge Dv).
Hypothesis devices : NoDup ds /\ ds <> [] /\ forall t, In t ts -> In (to Dv El t) ds.
Hypothesis elements : NoDup es.
Hypothesis one_each : forall e, at_most_one Dv (K e).

Theorem parts_lower_bound c m goes copies :
  (forall e, In e es -> delivers Dv El deq eeq c m (goes e) (copies e) e (K e) ts) ->
  exists d, In d ds /\ length es * (c - m) <= length ds * recv d ts.
Proof.
  destruct devices as [ND [NN HT]]. intros D. apply (busiest Dv El deq eeq); auto. intros e He.
  pose proof (parts_cost Dv El deq eeq c m (goes e) (copies e) e ts (K e) (one_each e) (D e He)). lia.
Qed.

Theorem once_lower_bound c m goes copies k :
  (forall e, In e es -> delivers Dv El deq eeq c m (goes e) (copies e) e (K e) ts /\
    keepers Dv c (goes e) (copies e) (K e) <= k) ->
  exists d, In d ds /\ length es * (c - k) <= 2 * length ds * recv d ts.
Proof.
  destruct devices as [ND [NN HT]]. intros D.
  destruct (busiest Dv El deq eeq ((c - k + 1) / 2) ds es ts) as [d [I L]]; auto.
  - intros e He. destruct (D e He) as [D1 D2].
    pose proof (once_cost Dv El deq eeq c m (goes e) (copies e) e ts (K e) (one_each e) D1).
    assert (c - k <= 2 * length (about e ts)) by lia. apply Nat.lt_succ_r, Nat.div_lt_upper_bound; lia.
  - exists d. split; auto. pose proof (Nat.div_mod (c - k + 1) 2 ltac:(lia)).
    pose proof (Nat.mod_upper_bound (c - k + 1) 2 ltac:(lia)). nia.
Qed.

Theorem joined_lower_bound a r l copies :
  2 <= a -> 1 <= r ->
  (forall e, In e es -> NoDup (l e) /\ length (l e) = a /\ NoDup (copies e) /\ length (copies e) = r /\
    forall i d, In i (l e) -> In d (copies e) -> In i (learn Dv El deq eeq e (K e) ts d)) ->
  exists d, In d ds /\ length es * (a + r - 2) <= length ds * recv d ts.
Proof.
  destruct devices as [ND [NN HT]]. intros Ha Hr D. apply (busiest Dv El deq eeq); auto. intros e He.
  destruct (D e He) as [N1 [L1 [N2 [L2 H]]]]. rewrite <- L1, <- L2.
  apply (joined_cost Dv El deq eeq e ts (K e) (l e) (copies e)); auto; [lia|].
  intros E. rewrite E in L2. simpl in L2. lia.
Qed.

Theorem copies_lower_bound r copies :
  (forall e, In e es -> NoDup (copies e) /\ length (copies e) = r /\
    forall d, In d (copies e) -> exists i, In i (learn Dv El deq eeq e (K e) ts d) /\ ~ In i (K e d)) ->
  exists d, In d ds /\ length es * r <= length ds * recv d ts.
Proof.
  destruct devices as [ND [NN HT]]. intros D. apply (busiest Dv El deq eeq); auto. intros e He.
  destruct (D e He) as [N [L H]]. rewrite <- L. apply (received_once Dv El deq eeq e ts (K e)); auto.
Qed.
(* Nothing is said of how many after there are: with k = 1 no several cost less than one of all. *)
Theorem several_lower_bound c m goes copies r k : 1 <= c -> k < r ->
  (forall e, In e es -> delivers Dv El deq eeq c m (goes e) (copies e) e (K e) ts /\
    forall i, i < c -> NoDup (copies e (goes e i)) /\ length (copies e (goes e i)) = r /\
      length (filter (fun d => mem i (K e d)) (copies e (goes e i))) <= k) ->
  exists d, In d ds /\ length es * (c + r - k - 1) <= length ds * recv d ts.
Proof.
  destruct devices as [ND [NN HT]]. intros Hc Hk D. apply (busiest Dv El deq eeq); auto. intros e He.
  destruct (D e He) as [D1 D2].
  apply (several_cost Dv El deq eeq c m (goes e) (copies e) e ts (K e) r k); auto.
Qed.
End Elements.

(* Nine devices in a ring, each with a summand of its own; three of these are wanted, added up, on the next three
   devices.  11 messages, once around and two further, do what each sum by itself takes 3 * (3 + 3 - 2) = 12 for; and
   11 = c + r - 1 is what several_lower_bound says of k = 0. *)
Definition ring_messages : list (Protocol.transfer nat nat) :=
  map (fun n => Protocol.Transfer nat nat (n mod 9) (S n mod 9) 0) (seq 0 11).
Example ring : delivers nat nat Nat.eq_dec Nat.eq_dec 9 3 (fun i => i / 3) (fun j => nth j [[3; 4; 5]; [6; 7; 8]; [0; 1; 2]] [])
    0 (fun d => [d]) ring_messages /\ length ring_messages = 11.
Proof.
  split; [|reflexivity]. intros i Hi.
  assert (C : forallb (fun i => forallb (fun d => mem i (Reduce.learn nat nat Nat.eq_dec Nat.eq_dec 0 (fun d => [d])
    ring_messages d)) (nth (i / 3) [[3; 4; 5]; [6; 7; 8]; [0; 1; 2]] [])) (seq 0 9) = true) by (vm_compute; reflexivity).
  split; [apply Nat.div_lt_upper_bound; lia|]. split.
  - do 9 (destruct i as [|i]; [discriminate|]). lia.
  - rewrite forallb_forall in C. specialize (C i ltac:(apply in_seq; lia)). rewrite forallb_forall in C.
    intros d I. apply mem_in, C, I.
Qed.
