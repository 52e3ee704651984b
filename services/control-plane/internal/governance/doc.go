// Package governance records what people must know of models beside their training
// runs, and reports the evidence for four controls.
//
//	card        what to know of a model before using it; a model without a written
//	            card has its README of the model repository, with source "repository"
//	eval        what a suite measured of a version, recorded when it has ended and
//	            never changed; its status is the suite's own verdict: passed, failed,
//	            or error where it broke off and says nothing of the model. A suite may
//	            pass although a metric did not: the metric is then an alert
//	endpoint    where a language model is hosted; nothing is dispatched there
//	compliance  the risk class of a version, and where the proof lies: the technical
//	            file is named here, never read
//	posture     the controls, judged by what this control plane holds: coverage only,
//	            no certificate
//
// A record belongs to the tenant that wrote it. A tenant sees its own records and
// those of tenant platform; its promotions are judged by these.
//
// The controls:
//
//	GOVERN-1.1   the audit chains that the tenant may read verify
//	MAP-1.1      the version that serves Production of each model is classified
//	MEASURE-2.1  each model that serves Production has a card
//	MANAGE-4.1   the tenant's runs of 90 days were approved, or rest on a standing
//	             authorisation: a setting that a person enabled
//
// A control is satisfied, partial or a gap if all, some or none of its subjects have
// evidence. Without subjects there is no evidence: a gap, which says so.
package governance
