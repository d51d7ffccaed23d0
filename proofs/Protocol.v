(* Lower bounds that hold for any protocol whatsoever, not only for typed steps.
   protocol H ts H'        rounds of transfers: senders hold what they send; anything may be forgotten
   recv_lower_bound        a device receives at least what it wants and does not hold
   group_lower_bound       a group of devices (a node) takes in at least what it wants and none of it holds *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.

Section Protocol.
Variables Dv El : Type.
Variable deq : forall a b : Dv, {a = b} + {a <> b}.
Record transfer := Transfer { from : Dv; to : Dv; what : El }.
Definition held := Dv -> El -> Prop.
Definition round (H : held) (ts : list transfer) (H' : held) :=
  (forall t, In t ts -> H (from t) (what t)) /\
  (forall d e, H' d e -> H d e \/ exists t, In t ts /\ to t = d /\ what t = e).
Inductive protocol : held -> list transfer -> held -> Prop :=
| no_round H : protocol H [] H
| one_round H ts H' us H'' : round H ts H' -> protocol H' us H'' -> protocol H (ts ++ us) H''.
Definition recv (d : Dv) (ts : list transfer) : nat :=
  length (filter (fun t => if deq (to t) d then true else false) ts).

Lemma protocol_held H ts H' : protocol H ts H' ->
  forall d e, H' d e -> H d e \/ exists t, In t ts /\ to t = d /\ what t = e.
Proof.
  induction 1 as [|H ts H' us H'' [R1 R2] P IH]; intros d e HE; auto.
  destruct (IH d e HE) as [HE'|[t [I E]]].
  - destruct (R2 d e HE') as [?|[t [I E]]]; auto. right; exists t. rewrite in_app_iff; auto.
  - right; exists t. rewrite in_app_iff; auto.
Qed.

(* Whatever the protocol, device d receives at least every element that it wants and does not hold. *)
Theorem recv_lower_bound H ts H' d l : protocol H ts H' -> NoDup l ->
  (forall e, In e l -> H' d e /\ ~ H d e) -> length l <= recv d ts.
Proof.
  intros P ND HL. unfold recv.
  rewrite <- (map_length what (filter _ ts)).
  apply NoDup_incl_length; auto. intros e He. destruct (HL e He) as [H1 H2].
  destruct (protocol_held _ _ _ P d e H1) as [?|[t [I [E1 E2]]]]; [tauto|].
  apply in_map_iff. exists t; split; auto. apply filter_In; split; auto.
  destruct (deq (to t) d); auto.
Qed.

Definition recv_from_outside (grp : Dv -> bool) (ts : list transfer) : nat :=
  length (filter (fun t => grp (to t) && negb (grp (from t))) ts).

Lemma protocol_group grp H ts H' : protocol H ts H' -> forall d e, grp d = true -> H' d e ->
  (exists d0, grp d0 = true /\ H d0 e) \/
  (exists t, In t ts /\ grp (to t) = true /\ grp (from t) = false /\ what t = e).
Proof.
  induction 1 as [|H ts H' us H'' [R1 R2] P IH]; intros d e Gd HE; [left; eauto|].
  destruct (IH d e Gd HE) as [[d1 [G1 H1]]|[t [I E]]].
  2: { right; exists t. rewrite in_app_iff; tauto. }
  destruct (R2 d1 e H1) as [?|[t [I [E1 E2]]]]; [left; eauto|].
  destruct (grp (from t)) eqn:Gs.
  - left. exists (from t). split; auto. rewrite <- E2. apply R1; auto.
  - right. exists t. rewrite in_app_iff, E1. auto.
Qed.

(* Whatever the protocol, over the links into a group come the elements that some member wants and none holds. *)
Theorem group_lower_bound grp H ts H' l : protocol H ts H' -> NoDup l ->
  (forall e, In e l -> (exists d, grp d = true /\ H' d e) /\ forall d, grp d = true -> ~ H d e) ->
  length l <= recv_from_outside grp ts.
Proof.
  intros P ND HL. unfold recv_from_outside. rewrite <- (map_length what (filter _ ts)).
  apply NoDup_incl_length; auto. intros e He. destruct (HL e He) as [[d [Gd H1]] H2].
  destruct (protocol_group grp _ _ _ P d e Gd H1) as [[d0 [G0 H0]]|[t [I [E1 [E2 E3]]]]].
  - exfalso; eapply H2; eauto.
  - apply in_map_iff. exists t; split; auto. apply filter_In; split; auto. rewrite E1, E2. auto.
Qed.
End Protocol.
