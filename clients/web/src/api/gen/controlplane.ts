// Generated from clients/go/controlplane/openapi.yaml by tools/types.mjs. DO NOT EDIT.
export interface paths {
    "/livez": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Liveness of the process (public) */
        get: operations["livez"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Alias of /livez for older probes (public) */
        get: operations["ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Readiness of this replica to receive traffic (public) */
        get: operations["readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** State of this replica; always 200 (public) */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Prometheus metrics (public) */
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/capabilities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Features and limits of this build (public) */
        get: operations["getCapabilities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Models of the model repository, and external ones that only the tracker knows (public) */
        get: operations["listModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/models/{model}/meta": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        /** Metadata from a model's definition (public) */
        get: operations["getModelMeta"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/models/{model}/readme": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        /** The model's README.md (public) */
        get: operations["getModelReadme"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/modelrepo/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Freshness of each model [read] */
        get: operations["getFreshness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/retrain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start a training run [retrain] */
        post: operations["startRetrain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/retrain/{flow_run_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                flow_run_id: components["parameters"]["FlowRunId"];
            };
            cookie?: never;
        };
        /** State of a training run [read] */
        get: operations["getRetrain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/retrain/{flow_run_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                flow_run_id: components["parameters"]["FlowRunId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancel a training run [retrain] */
        post: operations["cancelRetrain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Training runs, newest first [read] */
        get: operations["listRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Record a change and open one pending approval per model; starts no training [changes] */
        post: operations["noticeChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Approval records of the caller's tenant, newest first [read] */
        get: operations["listApprovals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/approvals/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        /** One approval record [read] */
        get: operations["getApproval"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/approvals/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve one record [approve] */
        post: operations["approveById"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/approvals/{id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reject one record [approve] */
        post: operations["rejectById"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/approve/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve the model's pending retrain and start it [approve] */
        post: operations["approveModel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/reject/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reject the model's pending retrain [approve] */
        post: operations["rejectModel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Report a registered version and apply the ladder to it [manage] */
        post: operations["reportVersion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/promotion-policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Promotion policies, by model [read] */
        get: operations["listPolicies"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/promotion-policies/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        /** A model's promotion policy [read] */
        get: operations["getPolicy"];
        /** Set a model's promotion policy [manage] */
        put: operations["putPolicy"];
        post?: never;
        /** Delete a model's promotion policy; without one nothing is promoted [manage] */
        delete: operations["deletePolicy"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/promotions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Promotions of the caller's tenant, newest first [read] */
        get: operations["listPromotions"];
        put?: never;
        /** Evaluate a version against the policy and open its promotion [approve] */
        post: operations["promote"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/promotions/{model}/gate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        /** Evaluate a version against the policy without opening a promotion [read] */
        get: operations["getGate"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/promotions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        /** One promotion [read] */
        get: operations["getPromotion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/promotions/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve a promotion and move the alias [approve] */
        post: operations["approvePromotion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/promotions/{id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reject a promotion [approve] */
        post: operations["rejectPromotion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/alias-history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** History of alias holders, newest first [read] */
        get: operations["listAliasHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Entries of the audit ledger, newest first [read] */
        get: operations["listAuditEvents"];
        put?: never;
        /** Record an action of another program under the caller's name [any write scope] */
        post: operations["recordAuditEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Recompute and verify the chain, or a range of sequence numbers [read] */
        get: operations["verifyAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit/checkpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Signed checkpoints of the chain, newest first [read] */
        get: operations["listAuditCheckpoints"];
        put?: never;
        /** Verify the entries after the last checkpoint and sign the newest entry of the caller's chain [manage] */
        post: operations["makeAuditCheckpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit/acknowledgements": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Acknowledge the open failures of a chain; a second person approves it as a guarded change [govern] */
        post: operations["acknowledgeAuditFailures"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Public keys of checkpoints, including retired ones [read] */
        get: operations["listAuditKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Export a range of the chain as NDJSON that can be verified offline [read] */
        get: operations["exportAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/modelrepo/forge-a": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Push webhook of forge A (signed)
         * @description Authenticated by the webhook secret in `X-Forge-A-Token` or `X-Gitlab-Token` or, if a signing
         *     token is set, by `webhook-id`, `webhook-timestamp` and `webhook-signature`. Checks run in this
         *     order: body over 5 MiB (413), secret not set (503), authentication (401), JSON object (400).
         */
        post: operations["pushedForgeA"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/modelrepo/forge-b": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Push webhook of forge B (signed)
         * @description Authenticated by `X-Forge-B-Signature-256` or `X-Hub-Signature-256`: `sha256=` and the hexadecimal
         *     HMAC-SHA256 of the body under the webhook secret. Checks run in the same order as for forge A.
         */
        post: operations["pushedForgeB"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/model-owners": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Models of the caller's tenant, and for the tenant platform all, with the tenant that owns them [read] */
        get: operations["listModelOwners"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/modelrepo/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Push events, newest first; the next page is in X-Next-Cursor [read] */
        get: operations["listPushes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/modelrepo/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Settings for watching the model repository and for the effects of a push [read] */
        get: operations["getModelrepoConfig"];
        /**
         * Change settings; takes effect immediately on all replicas [manage]
         * @description Unknown keys are ignored. If any value is invalid, nothing is changed.
         */
        put: operations["putModelrepoConfig"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/models/{model}/images/{file}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
                /** @description A file of the model's images folder: png, jpg, jpeg, gif, webp or svg */
                file: string;
            };
            cookie?: never;
        };
        /** An image of the model's images folder, at most 8 MiB (public) */
        get: operations["getModelImage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/approvals/{id}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        /**
         * What changed in the model repository since the model was last trained [read]
         * @description From the commit the model was last trained from to the commit of the record. For a model that
         *     was never trained, the diff starts at the first parent of the record's commit. At most 1 MiB.
         */
        get: operations["getApprovalDiff"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/approvals/{id}/effect": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        /**
         * What the caller's approval of the record would do now [read]
         * @description From the record, the model's promotion policy with its approval mode, and the version that stands under the
         *     policy's target. An approval says no more than this and does no less.
         */
        get: operations["getApprovalEffect"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/modelrepo/sync": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Poll the model repository now [manage]
         * @description Runs one poll. If it fails, the reason is in `error` and the status is still 200.
         */
        post: operations["syncModelrepo"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/reload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reload the model repository on all replicas [manage] */
        post: operations["reloadRegistry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/costs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Usage and cost of jobs, including synthetic ones, newest first [read] */
        get: operations["listCosts"];
        put?: never;
        /** Record the usage of a version's job; repeating it updates the record [manage] */
        post: operations["recordCost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/costs/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Cost by model or project, highest first, and per training run [read] */
        get: operations["costSummary"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/carbon": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Estimated energy and emissions of all recorded jobs, by model [read] */
        get: operations["carbon"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/budgets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Budgets of the caller's tenant and what each project has spent in this UTC month, by project [read] */
        get: operations["listBudgets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/budgets/{project}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                project: string;
            };
            cookie?: never;
        };
        get?: never;
        /** Set a project's monthly budget [manage] */
        put: operations["putBudget"];
        post?: never;
        /** Delete a project's budget; its costs remain [manage] */
        delete: operations["deleteBudget"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Batch jobs of the facility, newest first [read] */
        get: operations["listJobs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Running and waiting jobs; zeros if nothing is known [read] */
        get: operations["jobSummary"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A batch job; if several have this id, the one submitted last [read] */
        get: operations["getJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/jobs/{scheduler}/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                scheduler: components["schemas"]["Scheduler"];
                /** @description The scheduler's id of the job */
                id: string;
            };
            cookie?: never;
        };
        get?: never;
        /** Report a batch job; omitted members and a final state do not change [manage] */
        put: operations["putJob"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/evals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Evaluation runs, newest first [read] */
        get: operations["listEvals"];
        put?: never;
        /**
         * Record a finished evaluation run [manage]
         * @description A record never changes. Repeating a `run_id` with the same body returns the existing record;
         *     with a different body it is 409 `eval_conflict`.
         */
        post: operations["recordEval"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/llm/endpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Endpoints of hosted language models, by model [read] */
        get: operations["listLLMEndpoints"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/llm/endpoints/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        get?: never;
        /** Record the endpoint of a hosted language model [manage] */
        put: operations["putLLMEndpoint"];
        post?: never;
        /** Delete the tenant's record of an endpoint [manage] */
        delete: operations["deleteLLMEndpoint"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compliance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Risk classes of model versions, by model and version [read] */
        get: operations["listCompliance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compliance/{model}/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
                version: string;
            };
            cookie?: never;
        };
        get?: never;
        /** Classify a version; members missing in the body are removed [manage] */
        put: operations["putCompliance"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/model-cards": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Model cards, by model, and how many models have one [read]
         * @description A page holds at most 4 MiB of text, so it may be shorter than `limit`.
         */
        get: operations["listModelCards"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/model-cards/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        /** A model's card, or its README if it has no card [read] */
        get: operations["getModelCard"];
        /** Write a model's card [manage] */
        put: operations["putModelCard"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/governance/posture": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Evidence for four governance controls; not a certification [read] */
        get: operations["posture"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/governance/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Changes of what guards the platform, newest first [read] */
        get: operations["listGuardedChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/governance/changes/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve another person's change; it is then in force [govern] */
        post: operations["approveGuardedChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/governance/changes/{id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reject a change; nothing changes [govern] */
        post: operations["rejectGuardedChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auto-retrain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Auto-retrain settings of models, by name [read] */
        get: operations["listAutoRetrain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auto-retrain/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        get?: never;
        /**
         * Set when a model's drift starts training; enabling is a standing authorisation [manage]
         * @description A member that is absent or null keeps its value, or takes the default if there is none yet.
         */
        put: operations["putAutoRetrain"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drift/trigger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check the enabled models for drift now and train those that drift [retrain] */
        post: operations["triggerDrift"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/alerts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Firing alerts, most severe first [read] */
        get: operations["listAlerts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/aliases/{model}/{alias}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
                /** @description Staging, Canary or Production, any case */
                alias: string;
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Roll an alias back to a version that held it before [approve] */
        post: operations["rollbackAlias"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * State of the dependencies as seen by this replica, and the tenant's pending approvals [read]
         * @description All dependencies are queried in parallel with a timeout of 3 s. Each is `ok` (2xx), `degraded` (another
         *     status), `down` (no answer) or `unknown` (not probed; `note` gives the reason).
         */
        get: operations["status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outbox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Events of the outbox, oldest first [read]
         * @description Events of the caller's tenant and of `platform`; the legacy credential sees all.
         */
        get: operations["listOutbox"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outbox/republish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Republish the events created in a time window [manage]
         * @description At most 100,000 events. The broker drops duplicates within ten minutes, consumers drop the rest.
         */
        post: operations["republishOutbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outbox/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Discard a poison event [manage]
         * @description The audit ledger keeps its name, tenant, error and SHA-256. An event that is not poison is 409.
         */
        delete: operations["dropEvent"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outbox/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Replay an event with its attempts reset [manage] */
        post: operations["replayEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Alive: {
            status: string;
        };
        Readiness: {
            /** @description ok, degraded, starting or not_ready */
            status: string;
            checks: {
                [key: string]: string;
            };
        };
        Problem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            instance?: string;
            code: string;
            request_id?: string;
            errors?: components["schemas"]["FieldFault"][];
        } & {
            [key: string]: unknown;
        };
        FieldFault: {
            loc: string[];
            msg: string;
        };
        Health: {
            /** @enum {string} */
            status: "starting" | "ok" | "degraded";
            ready: boolean;
            prefect_api_url: string;
            auth_configured: boolean;
            models: {
                [key: string]: string[];
            };
            /** @description null when the store cannot be read */
            pending_approvals: number | null;
            deployment: string;
            dispatch: components["schemas"]["DispatchHealth"];
            circuit_breaker: components["schemas"]["BreakerHealth"];
            startup_checks: {
                [key: string]: string;
            };
            poller: components["schemas"]["PollerHealth"];
            runtime: components["schemas"]["Runtime"];
        };
        DispatchHealth: {
            /** @enum {string} */
            state: "unknown" | "ok" | "missing" | "incompatible" | "unreachable";
            /** Format: date-time */
            checked_at: string | null;
            detail: string | null;
        };
        BreakerHealth: {
            /** @enum {string} */
            state: "closed" | "open" | "half_open" | "unknown";
        };
        PollerHealth: {
            /** @description A repository to poll is configured and the interval is not 0 */
            enabled: boolean;
            /**
             * Format: double
             * @description Successful poll of any replica; null before the first
             */
            last_ok_seconds_ago: number | null;
            /** @description No success for three intervals */
            stale: boolean;
            /** @description Whether this replica polls */
            leader: boolean;
            /** @description Why the latest poll failed; absent after a success */
            last_error?: string;
        };
        Runtime: {
            /** @enum {string} */
            state_backend: "postgres" | "postgres-embedded";
            /** @enum {string} */
            configured_coordinator: "redis" | "postgres";
            /** @enum {string} */
            active_coordination: "redis" | "postgres" | "none";
            /** @enum {string} */
            configured_event_publisher: "nats" | "nats-embedded" | "log";
            event_relay_enabled: boolean;
            event_relay_error?: string;
            outbox: components["schemas"]["OutboxHealth"];
            horizontal_scaling_safe: boolean;
            horizontal_scaling_blockers: string[];
        };
        OutboxHealth: {
            /** Format: int64 */
            pending: number | null;
            /** Format: int64 */
            published: number | null;
            /** Format: int64 */
            poison: number | null;
            /** Format: double */
            oldest_pending_seconds: number | null;
        };
        Capabilities: {
            service: string;
            version: string;
            api: string;
            features: string[];
            limits: {
                [key: string]: number;
            };
            backends: string[];
        };
        Model: {
            model_name: string;
            datasets: string[];
            /** @description The enabled model's identity on the message bus; absent if it has none */
            bus_uuid?: string;
            /** @description true: only the tracker knows it and it has no definition; otherwise absent */
            external?: boolean;
        };
        ModelMeta: {
            name: string;
            trackerName: string;
            task_type: string;
            type: string;
            estimator: string;
            supported_datasets: string[];
            input_schema: {
                [key: string]: unknown;
            } | null;
            output_schema: {
                [key: string]: unknown;
            } | null;
            lifecycle: components["schemas"]["Rung"][];
            project: string;
            bus_uuid: string | null;
            enabled: boolean;
        };
        Rung: {
            name: string;
            metric: string;
            /** Format: double */
            threshold: number;
            /** @enum {string} */
            direction: "lower" | "higher";
            beats_baseline: boolean;
        };
        Readme: {
            text: string;
            /** @description SHA-256 of the text in hex */
            sha: string;
        };
        FreshnessSnapshot: {
            models: components["schemas"]["Freshness"][];
            last_event: components["schemas"]["LastPush"] | null;
        };
        LastPush: {
            commit_sha: string;
            /** Format: date-time */
            timestamp: string;
            /** @enum {string} */
            source: "webhook" | "poll";
        };
        Freshness: {
            model_id: string;
            /**
             * @description no_definition: an external model, which is not in the model repository
             * @enum {string}
             */
            status: "current" | "stale" | "unknown" | "no_definition";
            latest_modelrepo_commit: string | null;
            last_retrain_commit: string | null;
            /** Format: date-time */
            stale_since: string | null;
            /** Format: date-time */
            retrain_triggered_at: string | null;
            trained_from_commit: string | null;
            /** @description A training run that has not ended */
            active_run: string | null;
            /** @description Null before the first push */
            touched_by_last_push: boolean | null;
        };
        /** @enum {string} */
        Backend: "public_archive" | "object_store" | "dataplane" | "local";
        RetrainRequest: {
            model_name: string;
            dataset_name: string;
            /** @default false */
            is_dummy: boolean;
            backend_name?: components["schemas"]["Backend"];
            /** @description Passed to the training run; cannot override what the platform sets */
            parameters?: {
                [key: string]: unknown;
            };
        };
        Dispatch: {
            flow_run_id: string;
            deployment: string;
            status_url: string;
            parameters: {
                [key: string]: unknown;
            };
        };
        RunStatus: {
            flow_run_id: string;
            state_type: string | null;
            state_name: string | null;
            is_terminal: boolean;
            model_id: string | null;
            dataset_name: string | null;
            commit_sha: string | null;
            model_version: string | null;
            tracker_run_id: string | null;
            /** @description the orchestrator could not be queried just now */
            stale: boolean;
        };
        Run: {
            flow_run_id: string;
            model_id: string;
            dataset_name: string;
            origin: string;
            state_type: string;
            commit_sha: string | null;
            /** Format: uuid */
            approval_id: string | null;
            model_version: string | null;
            /** Format: date-time */
            started_at: string | null;
            /** Format: date-time */
            ended_at: string | null;
            /** @description On generated rows */
            is_dummy?: boolean;
            /** @description The version was trained on generated rows, whether or not the run is a dummy; absent without a version */
            is_generated?: boolean;
            /** @description Who asked for the run; for an approved change, who approved it */
            requested_by?: string;
            /** @description All who count as having asked for it, including those who pushed its commit */
            requesters?: string[];
            /**
             * Format: date-time
             * @description When it was handed to the orchestrator
             */
            dispatched_at?: string;
            /** @description Why it ended as it did */
            reason?: string | null;
            tracker_run_id?: string | null;
            /** @description Of the version, as the trainer reported it; absent without a version */
            metrics?: {
                [key: string]: number;
            };
        };
        RunList: {
            items: components["schemas"]["Run"][];
            next_cursor: string | null;
        };
        ChangeNotice: {
            model_ids: string[];
            commit_sha: string;
            commit_msg?: string;
            changed_files?: string[];
        };
        ChangeResult: {
            created: string[];
            existing: string[];
            superseded: string[];
            warnings: string[];
        };
        ModelOwner: {
            model: string;
            /** @description tenant of model.yaml, default `default` */
            tenant: string;
        };
        ModelOwnerList: {
            items: components["schemas"]["ModelOwner"][];
            next_cursor: string | null;
        };
        GuardedChange: {
            /** Format: uuid */
            id: string;
            /** @enum {string} */
            kind: "promotion_policy" | "modelrepo_config" | "auto_retrain" | "setting" | "audit_failure";
            /** @description The model, the name of the setting, or the tenant of the audit chain */
            target: string;
            /** @description What is in force */
            old: unknown;
            /** @description The requested value; null removes it */
            new: unknown;
            /** @enum {string} */
            state: "pending" | "applied" | "rejected" | "expired" | "superseded";
            requested_by: string;
            /** Format: date-time */
            requested_at: string;
            /** @description It came by the environment, so that two have to approve it */
            person_unknown: boolean;
            first_approver: string | null;
            decided_by: string | null;
            /** Format: date-time */
            decided_at: string | null;
            reason: string | null;
            /** Format: date-time */
            expires_at: string | null;
        };
        GuardedChangeList: {
            items: components["schemas"]["GuardedChange"][];
            next_cursor: string | null;
        };
        /** @enum {string} */
        ApprovalStatus: "pending" | "approving" | "approved" | "rejected" | "expired";
        Approval: {
            /** Format: uuid */
            id: string;
            /** @enum {string} */
            kind: "retrain" | "promotion";
            /** @enum {string} */
            origin: "ci" | "modelrepo" | "drift" | "promotion";
            model_id: string;
            dataset_name: string | null;
            status: components["schemas"]["ApprovalStatus"];
            commit_sha: string;
            commit_msg: string;
            changed_files: string[];
            tenant: string;
            requested_by: string;
            resolved_by: string | null;
            /** Format: date-time */
            requested_at: string;
            /** Format: date-time */
            resolved_at: string | null;
            prefect_run_id: string | null;
            reject_reason: string | null;
            /** Format: uuid */
            promotion_id: string | null;
            /** Format: date-time */
            expires_at: string | null;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
            /** @description Everyone who counts as a requester, including those who pushed the commit; none of them may approve it under separation of duties */
            requesters: string[];
            /** @description The author of the commit is unknown, so two people have to approve it under separation of duties */
            person_unknown: boolean;
            /** @description Who has approved it already where two have to */
            first_approver: string | null;
        };
        ApproveRequest: {
            dataset_name?: string;
            backend_name?: components["schemas"]["Backend"];
            reason?: string;
            /**
             * Format: uuid
             * @description The record that was shown; 409 approval_changed if another one is pending
             */
            approval_id?: string;
        };
        DecisionReason: {
            reason?: string;
        };
        ApproveResult: {
            /** @description null for a promotion */
            flow_run_id: string | null;
            status_url: string | null;
            model_id: string;
            /** Format: uuid */
            approval_id: string;
            status: components["schemas"]["ApprovalStatus"];
            /** Format: uuid */
            promotion_id?: string;
            /** @description True if this was the first of two approvals; the record is still pending */
            second_approval_needed?: boolean;
        };
        RejectResult: {
            model_id: string;
            /** Format: uuid */
            approval_id: string;
            status: components["schemas"]["ApprovalStatus"];
        };
        VersionReport: {
            model: string;
            version: string;
            flow_run_id?: string;
        };
        RungResult: {
            alias: string;
            pass: boolean;
            reason: string | null;
        };
        LadderResult: {
            rungs: components["schemas"]["RungResult"][];
            aliases_set: string[];
            /** Format: uuid */
            promotion_id: string | null;
        };
        /** @enum {string} */
        Operator: "lt" | "gt" | "lte" | "gte";
        /** @enum {string} */
        ApprovalMode: "each" | "run";
        PolicyInput: {
            /** @description If given, must be the model of the path */
            model?: string;
            metric: string;
            operator: components["schemas"]["Operator"];
            /** Format: double */
            threshold: number;
            /** @default Staging */
            from_alias: string;
            /** @default Production */
            to_alias: string;
            /** @default true */
            enabled: boolean;
            /** @default false */
            require_eval: boolean;
            approval_mode?: components["schemas"]["ApprovalMode"];
        };
        Policy: {
            model: string;
            metric: string;
            operator: components["schemas"]["Operator"];
            /** Format: double */
            threshold: number;
            from_alias: string;
            to_alias: string;
            enabled: boolean;
            require_eval: boolean;
            approval_mode: components["schemas"]["ApprovalMode"];
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        PolicyList: {
            items: components["schemas"]["Policy"][];
            next_cursor: string | null;
        };
        /** @enum {string} */
        PromotionState: "pending" | "approved" | "promoted" | "failed" | "rejected" | "expired" | "superseded";
        Condition: {
            metric: string;
            op: components["schemas"]["Operator"];
            /** Format: double */
            value: number;
        };
        Check: {
            name: string;
            pass: boolean;
            detail: string;
        };
        PromotionRequest: {
            model: string;
            /** @description Default is the holder of the alias from */
            version?: string;
            /** @description Default: the policy's, otherwise Staging */
            from?: string;
            /** @description Default: the policy's, otherwise Production */
            to?: string;
            conditions?: components["schemas"]["Condition"][];
            /**
             * @description Approve immediately if the caller may
             * @default false
             */
            approve: boolean;
            /** @default false */
            dry_run: boolean;
            reason?: string;
        };
        PromotionResult: {
            /**
             * Format: uuid
             * @description null for a dry run
             */
            id: string | null;
            model: string;
            version: string | null;
            from: string;
            to: string;
            state: components["schemas"]["PromotionState"];
            /** @description every check passes; a pending promotion still needs its decision */
            allowed: boolean;
            reasons: string[];
            checks: components["schemas"]["Check"][];
        };
        Promotion: {
            /** Format: uuid */
            id: string;
            model: string;
            version: string;
            from: string;
            to: string;
            state: components["schemas"]["PromotionState"];
            tenant: string;
            /** @enum {string} */
            origin: "request" | "ladder" | "outside";
            requested_by: string;
            /** Format: date-time */
            requested_at: string;
            decided_by: string | null;
            /** Format: date-time */
            decided_at: string | null;
            /** @description Of the decision, or why it failed, expired or was superseded */
            reason: string | null;
            /** @description Holder of the alias when the promotion was opened */
            previous_version: string | null;
            /** Format: uuid */
            approval_id: string;
            flow_run_id: string | null;
            conditions: components["schemas"]["Condition"][];
            /** Format: date-time */
            expires_at: string | null;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
            /** @description Everybody who counts as having asked; see the approval */
            requesters: string[];
            person_unknown: boolean;
            first_approver: string | null;
            /** @description Of the files that it asks for; approving others is 409 artifact_changed. Null if it was not known when the promotion was opened */
            digest?: string | null;
        };
        PromotionList: {
            items: components["schemas"]["Promotion"][];
            next_cursor: string | null;
        };
        GatePolicy: {
            allow: boolean;
            reasons: string[];
        };
        GateEval: {
            pass: boolean;
            /** @description Finite metrics of the version's run */
            metrics: {
                [key: string]: number;
            };
        };
        GateApproval: {
            required: boolean;
            /** @enum {string} */
            state: "pending" | "approved" | "rejected" | "expired";
        };
        Gate: {
            model: string;
            trackerName: string;
            version: string | null;
            policy: components["schemas"]["GatePolicy"];
            eval: components["schemas"]["GateEval"];
            approval: components["schemas"]["GateApproval"];
            allowed: boolean;
            checks: components["schemas"]["Check"][];
        };
        AliasHolder: {
            model: string;
            alias: string;
            /** @description null if the alias was removed */
            version: string | null;
            previous_version: string | null;
            /** Format: date-time */
            from: string;
            /** Format: date-time */
            to: string | null;
            actor: string;
            /** @enum {string} */
            via: "promotion" | "rollback" | "ladder" | "external";
            /** Format: uuid */
            promotion_id: string | null;
            /** @description SHA-256 of the files that were admitted, as the tag artifact_digest named it then */
            digest: string | null;
        };
        AliasHistory: {
            items: components["schemas"]["AliasHolder"][];
            next_cursor: string | null;
        };
        /** @description An entry and its link; hash is hex SHA-256 of prev_hash, LF and the RFC 8785 form of the other members. */
        AuditEvent: {
            /** @enum {integer} */
            v: 1;
            tenant: string;
            /** Format: int64 */
            seq: number;
            /** Format: uuid */
            event_id: string;
            /** @description RFC 3339 with six decimals and Z, as it is hashed */
            ts: string;
            source: string;
            actor: string;
            action: string;
            target: string;
            outcome: components["schemas"]["AuditOutcome"];
            request_id: string | null;
            details: Record<string, never>;
            prev_hash: string;
            hash: string;
        };
        /** @enum {string} */
        AuditOutcome: "ok" | "denied" | "failed";
        AuditEventList: {
            items: components["schemas"]["AuditEvent"][];
            next_cursor: string | null;
            /**
             * Format: int64
             * @description Matching entries on all pages
             */
            count: number;
        };
        AuditFactInput: {
            /** @enum {string} */
            source: "cli" | "bridge" | "agent" | "dashboard";
            action: string;
            /** @description Printable text */
            target: string;
            outcome?: components["schemas"]["AuditOutcome"];
            /** @description At most 16 KiB, nested at most 32 deep */
            details?: Record<string, never>;
        };
        AuditFactAccepted: {
            /** Format: uuid */
            event_id: string;
        };
        AuditHead: {
            /**
             * Format: int64
             * @description 0 for an empty chain
             */
            seq: number;
            hash: string;
        };
        AuditVerdict: {
            verified: boolean;
            /**
             * Format: int64
             * @description Entries whose hash was recomputed
             */
            checked: number;
            head: components["schemas"]["AuditHead"];
            /** Format: int64 */
            first_bad_seq?: number;
            /** @enum {string} */
            reason?: "hash" | "link" | "gap" | "checkpoint" | "forged" | "memory";
            /** @description Description of the failure */
            detail?: string;
            high_water: components["schemas"]["AuditHead"];
            /**
             * @description Whether the largest verified head and the failures are kept in the file beside the signing key; lost: the chain does not verify; none: there is no key
             * @enum {string}
             */
            memory: "kept" | "lost" | "none";
            /** @description Failed verifications that are not acknowledged: while there is one, the chain does not verify */
            failures: components["schemas"]["AuditFailure"][];
            /** @description Oldest first */
            acknowledgements: components["schemas"]["AuditAcknowledgement"][];
            /**
             * Format: int64
             * @description The last entry of the range under a checkpoint whose key is trusted; 0: none, or no key is known outside the database, so that the entries are only consistent with each other
             */
            signed_seq: number;
            /** Format: date-time */
            verified_at: string;
        };
        AuditFailure: {
            id: string;
            /** Format: int64 */
            seq: number;
            reason: string;
            detail: string;
            /** @description RFC 3339 with six decimals and Z */
            found_at: string;
        };
        AuditAcknowledgementInput: {
            /** @description Why the failure may be left behind: it is in the ledger and in every later verification and export */
            reason: string;
        };
        AuditAcknowledgement: {
            id: string;
            /** @description Ids */
            failures: string[];
            reason: string;
            requested_by: string;
            acknowledged_by: string;
            /** @description RFC 3339 with six decimals and Z */
            at: string;
            /**
             * Format: int64
             * @description Up to here the chain is accepted as it was; the next entry has the next number
             */
            seq: number;
            /** @description Of the last entry that there was; the next one follows it */
            hash: string;
            /** @description Hex SHA-256 of the lines of a bundle of the entries that there were */
            digest: string;
        };
        AuditCheckpoint: {
            /** Format: int64 */
            seq: number;
            hash: string;
            /** @description RFC 3339 with six decimals and Z, as it is signed */
            ts: string;
            key_id: string;
            /** Format: byte */
            signature: string;
        };
        AuditCheckpointList: {
            items: components["schemas"]["AuditCheckpoint"][];
            next_cursor: string | null;
        };
        AuditKey: {
            /** @description 16 hex digits of the SHA-256 of the public key */
            key_id: string;
            /** @description Ed25519 */
            algorithm: string;
            /**
             * Format: byte
             * @description The 32 bytes of the key
             */
            public_key: string;
            /** @description Whether the answering replica signs with it; the others are retired */
            active: boolean;
            /** @description Whether its checkpoints are trusted: it is the signing key, is named in AUDIT_TRUSTED_KEYS, or is vouched for by a trusted key */
            vouched: boolean;
            /** Format: date-time */
            created_at: string;
        };
        AuditKeyList: {
            items: components["schemas"]["AuditKey"][];
            next_cursor: string | null;
        };
        /** @description Effects of a push, or why it had none (`skipped` and `reason`). */
        PushOutcome: {
            /**
             * Format: int64
             * @description Absent if nothing was recorded; for a repeated delivery, the id of the first
             */
            event_id?: number;
            models_marked_stale?: string[];
            /** @description Models whose training was dispatched */
            retrain_triggered?: string[];
            approvals_created?: string[];
            ci_pipeline_triggered?: boolean;
            /** @description The commit was already the head */
            duplicate?: boolean;
            /** @enum {boolean} */
            skipped?: true;
            /** @enum {string} */
            reason?: "not a push" | "branch not watched" | "no commit sha" | "duplicate delivery";
        };
        PushEvent: {
            /** Format: int64 */
            id: number;
            commit_sha: string;
            branch: string;
            pushed_by: string;
            /**
             * Format: date-time
             * @description When the push was received or found by polling
             */
            timestamp: string;
            /** @enum {string} */
            source: "webhook" | "poll";
            delivery_id: string | null;
        };
        ModelrepoConfig: {
            /** @description Whether a push starts training */
            auto_retrain: boolean;
            /** @description 0 is off, otherwise 10..86400 */
            poll_interval_seconds: number;
            watch_branch: string;
            /**
             * @description touched: only models whose files changed become stale
             * @enum {string}
             */
            stale_scope: "all" | "touched";
            /**
             * @description How auto_retrain trains: after an approval, or immediately
             * @enum {string}
             */
            gate: "approval" | "direct";
        };
        ModelrepoConfigPatch: {
            auto_retrain?: boolean;
            /** @description 0 is off, otherwise 10..86400 */
            poll_interval_seconds?: number;
            watch_branch?: string;
            /** @enum {string} */
            stale_scope?: "all" | "touched";
            /** @enum {string} */
            gate?: "approval" | "direct";
        };
        SyncResult: {
            /** @description False if the head has not changed */
            new_commit: boolean;
            /** @description The head of the watched branch */
            commit_sha?: string;
            models_marked_stale?: string[];
            /** @description Why the poll failed */
            error?: string;
        };
        ReloadResult: {
            /** @description False if the previous registry stays in force */
            registry_reloaded: boolean;
            /** @description Ids of the models in force */
            models: string[];
            /** @description Errors in the files, as file:line: message */
            errors: string[];
        };
        ApprovalEffect: {
            /** Format: uuid */
            approval_id: string;
            /** @enum {string} */
            kind: "retrain" | "promotion";
            model_id: string;
            /** @description Whether the record waits for a decision */
            decidable: boolean;
            /** @description Approval mode of the policy in force; null without one */
            mode: components["schemas"]["ApprovalMode"] | null;
            policy_enabled: boolean;
            /** @description The alias that the policy or the promotion moves */
            target: string;
            /** @description The version under target now */
            current_version: string | null;
            /** @description The version that would stand there; null where training has yet to make it */
            new_version: string | null;
            dataset_name: string | null;
            starts_training: boolean;
            /**
             * @description When target moves, if the gate passes
             * @enum {string}
             */
            moves: "never" | "after_another_approval" | "by_this_approval";
            /** @description Whether another person has to approve as well */
            first_of_two: boolean;
            /** @description What approving does, for the button */
            action: string;
            /** @description What happens, in order */
            sentences: string[];
        };
        ApprovalDiff: {
            /** @description Absent when to_commit is the first commit of the repository */
            from_commit?: string;
            to_commit: string;
            files: components["schemas"]["DiffFile"][];
            /** @description Whether files or patches are omitted */
            truncated: boolean;
        };
        DiffFile: {
            path: string;
            /** @enum {string} */
            status: "added" | "modified" | "removed" | "renamed";
            /** @description Lines; 0 without a patch */
            additions: number;
            deletions: number;
            /** @description Unified hunks; absent for binary and very large files */
            patch?: string;
        };
        /** @enum {string} */
        Scheduler: "slurm" | "flux" | "mock";
        /**
         * @default model
         * @enum {string}
         */
        CostDimension: "model" | "project";
        CostInput: {
            /** @description Any case */
            model: string;
            version: string;
            /** @description The tracker's run; a repeated report without it keeps the known one */
            run_id?: string;
            scheduler: components["schemas"]["Scheduler"];
            job_id: string;
            /**
             * Format: double
             * @description Required, except for mock, where the synthetic figure of model and version is the default
             */
            gpu_hours?: number;
            /**
             * Format: double
             * @description Core-hours. Required, except for mock, where 0 is the default
             */
            cpu_hours?: number;
            /** @description Default: the existing record's, otherwise the model's, otherwise default */
            project?: string;
            /**
             * Format: double
             * @description USD; default: the service's GPU_COST_PER_HOUR
             */
            gpu_cost_per_hour?: number;
            /**
             * Format: double
             * @description USD of a core; default: the service's CPU_COST_PER_HOUR
             */
            cpu_cost_per_hour?: number;
        };
        CostRecorded: {
            /** @description false if the job was already recorded */
            recorded: boolean;
            /** Format: double */
            gpu_hours: number;
            /** Format: double */
            cpu_hours: number;
            /** Format: double */
            cost_usd: number;
            /** Format: double */
            kwh: number;
            /** Format: double */
            co2e_g: number;
            synthetic: boolean;
        };
        Cost: {
            /** Format: uuid */
            id: string;
            model: string;
            version: string;
            run_id: string | null;
            scheduler: components["schemas"]["Scheduler"];
            job_id: string;
            project: string;
            /** Format: double */
            gpu_hours: number;
            /** Format: double */
            cpu_hours: number;
            /** Format: double */
            cost_usd: number;
            /** Format: double */
            kwh: number;
            /** Format: double */
            co2e_g: number;
            /** @description A synthetic figure; not in sums unless requested */
            synthetic: boolean;
            /**
             * Format: date-time
             * @description Time of the first report; the cost counts in its UTC month
             */
            recorded_at: string;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        CostList: {
            items: components["schemas"]["Cost"][];
            next_cursor: string | null;
        };
        CostRow: {
            dimension: components["schemas"]["CostDimension"];
            key: string;
            /** Format: double */
            gpuHours: number;
            /** Format: double */
            costUsd: number;
            /**
             * Format: int64
             * @description Training runs; jobs of one tracker run count as one
             */
            runs: number;
        };
        CostTotals: {
            rows: components["schemas"]["CostRow"][];
            /**
             * Format: double
             * @description Sum of all rows, including those on other pages
             */
            total_gpu_hours: number;
            /** Format: double */
            total_cost_usd: number;
        };
        UnitEconomics: {
            /**
             * Format: double
             * @description USD; null without runs
             */
            costPerTrainingRun: number | null;
        };
        CostSummary: {
            cost: components["schemas"]["CostTotals"];
            unitEconomics: components["schemas"]["UnitEconomics"];
            next_cursor: string | null;
        };
        CarbonTotals: {
            /** Format: double */
            kwh: number;
            /** Format: double */
            co2e_g: number;
        };
        CarbonRow: {
            model: string;
            /** Format: double */
            kwh: number;
            /** Format: double */
            co2e_g: number;
        };
        Carbon: {
            totals: components["schemas"]["CarbonTotals"];
            /** Format: double */
            co2e_kg: number;
            /**
             * Format: double
             * @description Relative: 0.3 is ± 30 %
             */
            uncertainty: number;
            methodology: string;
            /** @enum {string} */
            scope: "operational";
            byModel: components["schemas"]["CarbonRow"][];
            /** @description Of byModel */
            next_cursor: string | null;
        };
        BudgetInput: {
            /**
             * Format: double
             * @description USD a month; 0 allows nothing, null or absent is no limit
             */
            cost_budget?: number | null;
            /**
             * Format: double
             * @description GPU hours a month, likewise
             */
            gpu_hours_budget?: number | null;
            /**
             * @default monthly
             * @enum {string}
             */
            period: "monthly";
        };
        Budget: {
            project: string;
            /** @enum {string} */
            period: "monthly";
            /** Format: double */
            costBudget: number | null;
            /**
             * Format: double
             * @description The project's own spend in this UTC month
             */
            consumedCostUsd: number;
            /**
             * Format: double
             * @description Consumed divided by budget; null without a budget or with one of 0
             */
            costRatio: number | null;
            /** Format: double */
            gpuHoursBudget: number | null;
            /** Format: double */
            consumedGpuHours: number;
            /** Format: double */
            gpuHoursRatio: number | null;
            /** @description Whether either budget is exceeded */
            overBudget: boolean;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        BudgetList: {
            items: components["schemas"]["Budget"][];
            /**
             * Format: double
             * @description The tenant's spend in this UTC month, including projects without a budget
             */
            consumed_cost_usd: number;
            next_cursor: string | null;
        };
        /** @enum {string} */
        JobState: "SUBMITTED" | "PENDING" | "RUNNING" | "COMPLETED" | "FAILED" | "CANCELLED" | "TIMEOUT" | "UNKNOWN";
        JobInput: {
            /** @description If given, must be the id of the path */
            id?: string;
            /** @description If given, must be the scheduler of the path */
            scheduler?: string;
            /** @description Default: the cluster that has a job with this id, otherwise the scheduler's name */
            cluster?: string;
            /** @description Required in the first report */
            model?: string;
            dataset?: string;
            state: components["schemas"]["JobState"];
            partition?: string;
            resources?: components["schemas"]["JobResourcesInput"];
            timing?: components["schemas"]["JobTimingInput"];
            /** Format: int32 */
            exitCode?: number;
            flowRunId?: string;
            trackerRunId?: string;
        };
        JobResourcesInput: {
            /** Format: int32 */
            nodes?: number;
            /** Format: int32 */
            gpus?: number;
            /** Format: int32 */
            cpus?: number;
        };
        JobTimingInput: {
            /**
             * Format: date-time
             * @description Default: time of the first report
             */
            submit?: string;
            /**
             * Format: date-time
             * @description Default: time of the first report that it runs
             */
            start?: string;
            /**
             * Format: date-time
             * @description Default: time of the first report that it has ended
             */
            end?: string;
        };
        JobResources: {
            /** Format: int32 */
            nodes: number;
            /** Format: int32 */
            gpus: number;
            /** Format: int32 */
            cpus: number;
        };
        JobTiming: {
            /** Format: date-time */
            submit: string;
            /** Format: date-time */
            start: string | null;
            /** Format: date-time */
            end: string | null;
            /**
             * Format: int64
             * @description Up to now while it waits; null if unknown
             */
            queueSeconds: number | null;
            /**
             * Format: int64
             * @description Up to now while it runs; null if it has not started or that is unknown
             */
            runSeconds: number | null;
        };
        Job: {
            id: string;
            scheduler: components["schemas"]["Scheduler"];
            cluster: string;
            model: string;
            dataset: string | null;
            state: components["schemas"]["JobState"];
            partition: string | null;
            resources: components["schemas"]["JobResources"];
            timing: components["schemas"]["JobTiming"];
            /** Format: int32 */
            exitCode: number | null;
            flowRunId: string | null;
            trackerRunId: string | null;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        JobList: {
            items: components["schemas"]["Job"][];
            next_cursor: string | null;
        };
        Facility: {
            /**
             * Format: int64
             * @description Requested by running jobs
             */
            nodesAllocated: number;
            /**
             * Format: int64
             * @description Requested by running jobs
             */
            gpusAllocated: number;
            /** Format: int64 */
            jobsRunning: number;
            /**
             * Format: int64
             * @description Waiting jobs
             */
            queueDepth: number;
            /** @description All known clusters, regardless of the filter */
            clusters: string[];
            partitions: components["schemas"]["FacilityPartition"][];
        };
        FacilityPartition: {
            /** @description default holds the jobs without one */
            name: string;
            /** Format: int64 */
            running: number;
            /** Format: int64 */
            queued: number;
            /** Format: int64 */
            gpusAllocated: number;
        };
        JobSummary: {
            facility: components["schemas"]["Facility"];
        };
        /**
         * @description The suite's own verdict; error means that the run broke off and says nothing about the model
         * @enum {string}
         */
        EvalStatus: "passed" | "failed" | "error";
        EvalMetric: {
            metric: string;
            /** Format: double */
            value: number;
            /** Format: double */
            baseline: number | null;
            passed: boolean;
        };
        EvalMetricInput: {
            metric: string;
            /** Format: double */
            value: number;
            /** Format: double */
            baseline?: number | null;
            passed: boolean;
        };
        EvalInput: {
            /** @description Any case; need not be in the model repository */
            model: string;
            version: string;
            /** @description Without ':' */
            suite: string;
            status: components["schemas"]["EvalStatus"];
            /** @description Each metric at most once */
            metrics: components["schemas"]["EvalMetricInput"][];
            /** @description Unique within a tenant */
            run_id?: string | null;
        };
        Eval: {
            /** Format: uuid */
            id: string;
            tenant: string;
            model: string;
            version: string;
            suite: string;
            status: components["schemas"]["EvalStatus"];
            metrics: components["schemas"]["EvalMetric"][];
            run_id: string | null;
            /**
             * Format: double
             * @description Fraction of the metrics that passed; null without metrics
             */
            passRate: number | null;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        EvalList: {
            items: components["schemas"]["Eval"][];
            next_cursor: string | null;
        };
        LLMEndpointInput: {
            /** @description If given, must be the model of the path */
            model?: string;
            engine: string;
            hostedModelId: string;
            /** @description Tokens */
            maxModelLen: number;
            /** @default 1 */
            tensorParallel: number;
            /** @default auto */
            dtype: string;
            /** @default true */
            enabled: boolean;
        };
        LLMEndpoint: {
            tenant: string;
            model: string;
            engine: string;
            hostedModelId: string;
            maxModelLen: number;
            tensorParallel: number;
            dtype: string;
            enabled: boolean;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        LLMEndpointList: {
            items: components["schemas"]["LLMEndpoint"][];
            next_cursor: string | null;
        };
        /** @enum {string} */
        RiskClass: "minimal" | "limited" | "high" | "prohibited";
        ComplianceInput: {
            riskClass: components["schemas"]["RiskClass"];
            /** @description Relative, without . and .. */
            technicalFilePath?: string | null;
            /** @description 64 hexadecimal digits */
            provenanceHash?: string | null;
        };
        Compliance: {
            tenant: string;
            model: string;
            version: string;
            riskClass: components["schemas"]["RiskClass"];
            technicalFile: string | null;
            provenance: string | null;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        ComplianceList: {
            items: components["schemas"]["Compliance"][];
            next_cursor: string | null;
        };
        ModelCardInput: {
            /** @description If given, must be the model of the path */
            model?: string;
            version?: string | null;
            /** @description At most 256 KiB */
            markdown: string;
            /**
             * @description Author; must not be repository
             * @default api
             */
            source: string;
        };
        ModelCard: {
            /** @description null for a README */
            tenant: string | null;
            model: string;
            version: string | null;
            markdown: string;
            /** @description repository: the README of the model */
            source: string;
            /**
             * Format: date-time
             * @description null for a README
             */
            updated_at: string | null;
            /** @description null for a README */
            updated_by: string | null;
        };
        ModelCardList: {
            items: components["schemas"]["ModelCard"][];
            next_cursor: string | null;
            withCard: number;
            withoutCard: number;
            /**
             * Format: double
             * @description withCard / total; 0 if there is no model
             */
            coverage: number;
            /** @description Models of the repository and hosted models */
            total: number;
        };
        /** @enum {string} */
        ControlStatus: "satisfied" | "partial" | "gap";
        Control: {
            control: string;
            /** @enum {string} */
            function: "GOVERN" | "MAP" | "MEASURE" | "MANAGE";
            title: string;
            status: components["schemas"]["ControlStatus"];
            evidence: string[];
        };
        Posture: {
            controls: components["schemas"]["Control"][];
            satisfied: number;
            total: number;
        };
        AutoRetrainInput: {
            enabled: boolean;
            /** @description Data set to train on; empty: the model's first */
            dataset_name?: string | null;
            /**
             * Format: double
             * @description Lowest z score that counts as drift
             * @default 3
             */
            min_z: number;
            /**
             * Format: int32
             * @description Minimum time between two triggers that had an effect
             * @default 3600
             */
            cooldown_seconds: number;
            gate?: components["schemas"]["AutoRetrainGate"];
            kind?: components["schemas"]["DriftKind"];
        };
        /**
         * @description approval (default): a record that waits for a decision; direct: an immediate run
         * @enum {string}
         */
        AutoRetrainGate: "approval" | "direct";
        /**
         * @description What is checked: predictions (default), inputs, or the worse of both
         * @enum {string}
         */
        DriftKind: "prediction" | "input" | "any";
        AutoRetrain: {
            model: string;
            enabled: boolean;
            /** @description null: the model's first */
            dataset_name: string | null;
            /** Format: double */
            min_z: number;
            /** Format: int32 */
            cooldown_seconds: number;
            gate: components["schemas"]["AutoRetrainGate"];
            /** @description AUTO_RETRAIN_GATE forces approval regardless of gate */
            gate_forced: boolean;
            kind: components["schemas"]["DriftKind"];
            /**
             * Format: date-time
             * @description By the caller's tenant; starts its cooldown
             */
            last_triggered_at: string | null;
            last_outcome: string | null;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        AutoRetrainList: {
            items: components["schemas"]["AutoRetrain"][];
            next_cursor: string | null;
        };
        DriftTrigger: {
            /**
             * @description Only report what would happen
             * @default false
             */
            dry_run: boolean;
            /** @description Only this model; default: all enabled models */
            model?: string;
        };
        /** @enum {string} */
        DriftOutcome: "would_trigger" | "requested" | "dispatched" | "below_threshold" | "cooling_down" | "already_pending" | "blocked_corrupt" | "failed";
        DriftResult: {
            model: string;
            /**
             * Format: double
             * @description The largest z score checked; absent if there is none
             */
            z_score?: number;
            outcome: components["schemas"]["DriftOutcome"];
            flow_run_id?: string;
            /** Format: uuid */
            approval_id?: string;
            reason?: string;
        };
        DriftTriggered: {
            results: components["schemas"]["DriftResult"][];
        };
        Alert: {
            /** @description <source>:<key> */
            id: string;
            /** @description drift, deploy, budget or eval */
            source: string;
            /** @enum {string} */
            severity: "critical" | "error" | "warn";
            /** @enum {string} */
            state: "firing";
            title: string;
            labels: {
                [key: string]: string;
            };
            /** Format: date-time */
            since: string;
        };
        AlertList: {
            items: components["schemas"]["Alert"][];
            next_cursor: string | null;
        };
        RollbackRequest: {
            /** @description A former holder of the alias; default: the previous one */
            version?: string;
            reason: string;
        };
        Rollback: {
            /** Format: uuid */
            id: string;
            model: string;
            alias: string;
            version: string;
            previous_version: string | null;
            /** @enum {string} */
            state: "moved" | "moving";
            actor: string;
            reason: string;
        };
        NeighbourStatus: {
            /** @description status is ok */
            ok: boolean;
            /** @enum {string} */
            status: "ok" | "degraded" | "down" | "unknown";
            /**
             * Format: double
             * @description Time to the start of the answer; absent if there was none
             */
            latency_ms?: number;
            /** @description Always present when unknown */
            note?: string;
        };
        Status: {
            /** @description By tracker, orchestrator, serving, bus */
            services: {
                [key: string]: components["schemas"]["NeighbourStatus"];
            };
            /**
             * Format: int64
             * @description Of the caller's tenant; null if they cannot be read
             */
            pending_approvals: number | null;
        };
        OutboxEvent: {
            /** Format: uuid */
            id: string;
            /** Format: int64 */
            seq: number;
            /** @enum {string} */
            state: "poison" | "pending" | "published";
            tenant: string;
            namespace: string;
            name: string;
            subject_id: string | null;
            /** @description null if it is larger than 16384 bytes */
            payload: {
                [key: string]: unknown;
            } | null;
            /** Format: int64 */
            payload_bytes: number;
            /** @description Hexadecimal SHA-256 of the payload as stored */
            digest: string;
            actor: string;
            request_id: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            next_attempt_at: string;
            /** @description Attempts that failed because of the event itself */
            refusals: number;
            /** Format: date-time */
            published_at: string | null;
            /** Format: int64 */
            stream_seq: number | null;
            /** Format: date-time */
            poison_at: string | null;
            last_error: string | null;
        };
        OutboxPage: {
            items: components["schemas"]["OutboxEvent"][];
            next_cursor: string | null;
        };
        RepublishRequest: {
            /**
             * Format: date-time
             * @description Inclusive
             */
            from: string;
            /**
             * Format: date-time
             * @description Exclusive
             */
            to: string;
        };
        Republished: {
            /** Format: int64 */
            republished: number;
            /** Format: date-time */
            from: string;
            /** Format: date-time */
            to: string;
        };
    };
    responses: {
        /** @description Separation of duties is enforced, so the change waits until another person approves it */
        GuardedChange: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["GuardedChange"];
            };
        };
        /** @description Effects of the push, or why it was skipped */
        Pushed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["PushOutcome"];
            };
        };
        /** @description The settings in force */
        ModelrepoConfig: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ModelrepoConfig"];
            };
        };
        /** @description The process is alive */
        Alive: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Alive"];
            };
        };
        /** @description Readiness and its checks */
        Readiness: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Readiness"];
            };
        };
        /** @description Refused or failed; see code */
        Problem: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: {
        /** @description Model id, any case */
        ModelId: string;
        RecordId: string;
        FlowRunId: string;
        Limit: number;
        /** @description The caller's tenant, which is the default, or platform for what belongs to no tenant */
        AuditTenant: string;
        /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
        Cursor: string;
        GroupLimit: number;
        /** @description Include synthetic figures */
        IncludeSynthetic: boolean;
        Cluster: string;
    };
    requestBodies: {
        /** @description The forge's push payload, as JSON; unused keys are ignored. */
        PushPayload: {
            content: {
                "application/json": {
                    [key: string]: unknown;
                };
            };
        };
        Approve: {
            content: {
                "application/json": components["schemas"]["ApproveRequest"];
            };
        };
        Reject: {
            content: {
                "application/json": components["schemas"]["DecisionReason"];
            };
        };
    };
    headers: never;
    pathItems: never;
}
export type Alive = components['schemas']['Alive'];
export type Readiness = components['schemas']['Readiness'];
export type Problem = components['schemas']['Problem'];
export type FieldFault = components['schemas']['FieldFault'];
export type Health = components['schemas']['Health'];
export type DispatchHealth = components['schemas']['DispatchHealth'];
export type BreakerHealth = components['schemas']['BreakerHealth'];
export type PollerHealth = components['schemas']['PollerHealth'];
export type Runtime = components['schemas']['Runtime'];
export type OutboxHealth = components['schemas']['OutboxHealth'];
export type Capabilities = components['schemas']['Capabilities'];
export type Model = components['schemas']['Model'];
export type ModelMeta = components['schemas']['ModelMeta'];
export type Rung = components['schemas']['Rung'];
export type Readme = components['schemas']['Readme'];
export type FreshnessSnapshot = components['schemas']['FreshnessSnapshot'];
export type LastPush = components['schemas']['LastPush'];
export type Freshness = components['schemas']['Freshness'];
export type Backend = components['schemas']['Backend'];
export type RetrainRequest = components['schemas']['RetrainRequest'];
export type Dispatch = components['schemas']['Dispatch'];
export type RunStatus = components['schemas']['RunStatus'];
export type Run = components['schemas']['Run'];
export type RunList = components['schemas']['RunList'];
export type ChangeNotice = components['schemas']['ChangeNotice'];
export type ChangeResult = components['schemas']['ChangeResult'];
export type ModelOwner = components['schemas']['ModelOwner'];
export type ModelOwnerList = components['schemas']['ModelOwnerList'];
export type GuardedChange = components['schemas']['GuardedChange'];
export type GuardedChangeList = components['schemas']['GuardedChangeList'];
export type ApprovalStatus = components['schemas']['ApprovalStatus'];
export type Approval = components['schemas']['Approval'];
export type ApproveRequest = components['schemas']['ApproveRequest'];
export type DecisionReason = components['schemas']['DecisionReason'];
export type ApproveResult = components['schemas']['ApproveResult'];
export type RejectResult = components['schemas']['RejectResult'];
export type VersionReport = components['schemas']['VersionReport'];
export type RungResult = components['schemas']['RungResult'];
export type LadderResult = components['schemas']['LadderResult'];
export type Operator = components['schemas']['Operator'];
export type ApprovalMode = components['schemas']['ApprovalMode'];
export type PolicyInput = components['schemas']['PolicyInput'];
export type Policy = components['schemas']['Policy'];
export type PolicyList = components['schemas']['PolicyList'];
export type PromotionState = components['schemas']['PromotionState'];
export type Condition = components['schemas']['Condition'];
export type Check = components['schemas']['Check'];
export type PromotionRequest = components['schemas']['PromotionRequest'];
export type PromotionResult = components['schemas']['PromotionResult'];
export type Promotion = components['schemas']['Promotion'];
export type PromotionList = components['schemas']['PromotionList'];
export type GatePolicy = components['schemas']['GatePolicy'];
export type GateEval = components['schemas']['GateEval'];
export type GateApproval = components['schemas']['GateApproval'];
export type Gate = components['schemas']['Gate'];
export type AliasHolder = components['schemas']['AliasHolder'];
export type AliasHistory = components['schemas']['AliasHistory'];
export type AuditEvent = components['schemas']['AuditEvent'];
export type AuditOutcome = components['schemas']['AuditOutcome'];
export type AuditEventList = components['schemas']['AuditEventList'];
export type AuditFactInput = components['schemas']['AuditFactInput'];
export type AuditFactAccepted = components['schemas']['AuditFactAccepted'];
export type AuditHead = components['schemas']['AuditHead'];
export type AuditVerdict = components['schemas']['AuditVerdict'];
export type AuditFailure = components['schemas']['AuditFailure'];
export type AuditAcknowledgementInput = components['schemas']['AuditAcknowledgementInput'];
export type AuditAcknowledgement = components['schemas']['AuditAcknowledgement'];
export type AuditCheckpoint = components['schemas']['AuditCheckpoint'];
export type AuditCheckpointList = components['schemas']['AuditCheckpointList'];
export type AuditKey = components['schemas']['AuditKey'];
export type AuditKeyList = components['schemas']['AuditKeyList'];
export type PushOutcome = components['schemas']['PushOutcome'];
export type PushEvent = components['schemas']['PushEvent'];
export type ModelrepoConfig = components['schemas']['ModelrepoConfig'];
export type ModelrepoConfigPatch = components['schemas']['ModelrepoConfigPatch'];
export type SyncResult = components['schemas']['SyncResult'];
export type ReloadResult = components['schemas']['ReloadResult'];
export type ApprovalEffect = components['schemas']['ApprovalEffect'];
export type ApprovalDiff = components['schemas']['ApprovalDiff'];
export type DiffFile = components['schemas']['DiffFile'];
export type Scheduler = components['schemas']['Scheduler'];
export type CostDimension = components['schemas']['CostDimension'];
export type CostInput = components['schemas']['CostInput'];
export type CostRecorded = components['schemas']['CostRecorded'];
export type Cost = components['schemas']['Cost'];
export type CostList = components['schemas']['CostList'];
export type CostRow = components['schemas']['CostRow'];
export type CostTotals = components['schemas']['CostTotals'];
export type UnitEconomics = components['schemas']['UnitEconomics'];
export type CostSummary = components['schemas']['CostSummary'];
export type CarbonTotals = components['schemas']['CarbonTotals'];
export type CarbonRow = components['schemas']['CarbonRow'];
export type Carbon = components['schemas']['Carbon'];
export type BudgetInput = components['schemas']['BudgetInput'];
export type Budget = components['schemas']['Budget'];
export type BudgetList = components['schemas']['BudgetList'];
export type JobState = components['schemas']['JobState'];
export type JobInput = components['schemas']['JobInput'];
export type JobResourcesInput = components['schemas']['JobResourcesInput'];
export type JobTimingInput = components['schemas']['JobTimingInput'];
export type JobResources = components['schemas']['JobResources'];
export type JobTiming = components['schemas']['JobTiming'];
export type Job = components['schemas']['Job'];
export type JobList = components['schemas']['JobList'];
export type Facility = components['schemas']['Facility'];
export type FacilityPartition = components['schemas']['FacilityPartition'];
export type JobSummary = components['schemas']['JobSummary'];
export type EvalStatus = components['schemas']['EvalStatus'];
export type EvalMetric = components['schemas']['EvalMetric'];
export type EvalMetricInput = components['schemas']['EvalMetricInput'];
export type EvalInput = components['schemas']['EvalInput'];
export type Eval = components['schemas']['Eval'];
export type EvalList = components['schemas']['EvalList'];
export type LlmEndpointInput = components['schemas']['LLMEndpointInput'];
export type LlmEndpoint = components['schemas']['LLMEndpoint'];
export type LlmEndpointList = components['schemas']['LLMEndpointList'];
export type RiskClass = components['schemas']['RiskClass'];
export type ComplianceInput = components['schemas']['ComplianceInput'];
export type Compliance = components['schemas']['Compliance'];
export type ComplianceList = components['schemas']['ComplianceList'];
export type ModelCardInput = components['schemas']['ModelCardInput'];
export type ModelCard = components['schemas']['ModelCard'];
export type ModelCardList = components['schemas']['ModelCardList'];
export type ControlStatus = components['schemas']['ControlStatus'];
export type Control = components['schemas']['Control'];
export type Posture = components['schemas']['Posture'];
export type AutoRetrainInput = components['schemas']['AutoRetrainInput'];
export type AutoRetrainGate = components['schemas']['AutoRetrainGate'];
export type DriftKind = components['schemas']['DriftKind'];
export type AutoRetrain = components['schemas']['AutoRetrain'];
export type AutoRetrainList = components['schemas']['AutoRetrainList'];
export type DriftTrigger = components['schemas']['DriftTrigger'];
export type DriftOutcome = components['schemas']['DriftOutcome'];
export type DriftResult = components['schemas']['DriftResult'];
export type DriftTriggered = components['schemas']['DriftTriggered'];
export type Alert = components['schemas']['Alert'];
export type AlertList = components['schemas']['AlertList'];
export type RollbackRequest = components['schemas']['RollbackRequest'];
export type Rollback = components['schemas']['Rollback'];
export type NeighbourStatus = components['schemas']['NeighbourStatus'];
export type Status = components['schemas']['Status'];
export type OutboxEvent = components['schemas']['OutboxEvent'];
export type OutboxPage = components['schemas']['OutboxPage'];
export type RepublishRequest = components['schemas']['RepublishRequest'];
export type Republished = components['schemas']['Republished'];
export type ResponseGuardedChange = components['responses']['GuardedChange'];
export type ResponsePushed = components['responses']['Pushed'];
export type ResponseModelrepoConfig = components['responses']['ModelrepoConfig'];
export type ResponseAlive = components['responses']['Alive'];
export type ResponseReadiness = components['responses']['Readiness'];
export type ResponseProblem = components['responses']['Problem'];
export type ParameterModelId = components['parameters']['ModelId'];
export type ParameterRecordId = components['parameters']['RecordId'];
export type ParameterFlowRunId = components['parameters']['FlowRunId'];
export type ParameterLimit = components['parameters']['Limit'];
export type ParameterAuditTenant = components['parameters']['AuditTenant'];
export type ParameterCursor = components['parameters']['Cursor'];
export type ParameterGroupLimit = components['parameters']['GroupLimit'];
export type ParameterIncludeSynthetic = components['parameters']['IncludeSynthetic'];
export type ParameterCluster = components['parameters']['Cluster'];
export type RequestBodyPushPayload = components['requestBodies']['PushPayload'];
export type RequestBodyApprove = components['requestBodies']['Approve'];
export type RequestBodyReject = components['requestBodies']['Reject'];
export type $defs = Record<string, never>;
export interface operations {
    livez: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Alive"];
        };
    };
    ready: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Alive"];
            default: components["responses"]["Problem"];
        };
    };
    readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Readiness"];
            503: components["responses"]["Readiness"];
        };
    };
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Health */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Text exposition format */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    getCapabilities: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Capabilities */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Capabilities"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listModels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Models, by name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Model"][];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getModelMeta: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Metadata */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelMeta"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getModelReadme: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Text */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readme"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getFreshness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Freshness */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FreshnessSnapshot"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    startRetrain: {
        parameters: {
            query?: never;
            header?: {
                /** @description 1..255 printable ASCII; repeating key and body returns the stored answer for 30 days */
                "Idempotency-Key"?: string;
                /** @description Alias of Idempotency-Key; 400 if both are given and differ */
                "X-Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RetrainRequest"];
            };
        };
        responses: {
            /** @description The run was accepted */
            200: {
                headers: {
                    /** @description true when the answer is the stored one */
                    "Idempotency-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dispatch"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getRetrain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                flow_run_id: components["parameters"]["FlowRunId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunStatus"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    cancelRetrain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                flow_run_id: components["parameters"]["FlowRunId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Cancellation requested */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunStatus"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listRuns: {
        parameters: {
            query?: {
                model?: string;
                /** @description A state type such as COMPLETED, any case */
                state?: string;
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    noticeChange: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangeNotice"];
            };
        };
        responses: {
            /** @description Recorded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listApprovals: {
        parameters: {
            query?: {
                status?: components["schemas"]["ApprovalStatus"];
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Records; the next page's cursor is in X-Next-Cursor */
            200: {
                headers: {
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Approval"][];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getApproval: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Record */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Approval"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    approveById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Approve"];
        responses: {
            /** @description Approved */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApproveResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    rejectById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reject"];
        responses: {
            /** @description Rejected */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RejectResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    approveModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Approve"];
        responses: {
            /** @description Approved */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApproveResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    rejectModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reject"];
        responses: {
            /** @description Rejected */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RejectResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    reportVersion: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VersionReport"];
            };
        };
        responses: {
            /** @description Result of the ladder */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LadderResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listPolicies: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Policies */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getPolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Policy */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policy"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    putPolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PolicyInput"];
            };
        };
        responses: {
            /** @description Policy */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policy"];
                };
            };
            202: components["responses"]["GuardedChange"];
            default: components["responses"]["Problem"];
        };
    };
    deletePolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            202: components["responses"]["GuardedChange"];
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    listPromotions: {
        parameters: {
            query?: {
                model?: string;
                state?: components["schemas"]["PromotionState"];
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Promotions */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PromotionList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    promote: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PromotionRequest"];
            };
        };
        responses: {
            /** @description Opened, decided or (dry_run) only evaluated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PromotionResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getGate: {
        parameters: {
            query?: {
                /** @description A whole number from 1 */
                version?: string;
                /** @description Staging, Canary or Production, any case */
                from?: string;
                /** @description Staging, Canary or Production, any case */
                to?: string;
            };
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Gate */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Gate"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getPromotion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Promotion */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Promotion"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    approvePromotion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reject"];
        responses: {
            /** @description Promotion */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Promotion"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    rejectPromotion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reject"];
        responses: {
            /** @description Promotion */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Promotion"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listAliasHistory: {
        parameters: {
            query?: {
                model?: string;
                /** @description Staging, Canary or Production, any case */
                alias?: string;
                /** @description RFC 3339; only the holder at that instant (needs model and alias) */
                at?: string;
                /** @description true: only the versions that hold an alias now */
                holding?: boolean;
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Holders */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AliasHistory"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listAuditEvents: {
        parameters: {
            query?: {
                /** @description The caller's tenant, which is the default, or platform for what belongs to no tenant */
                tenant?: components["parameters"]["AuditTenant"];
                /** @description Model id, any case: entries whose target is that model */
                model?: string;
                action?: string;
                source?: string;
                actor?: string;
                /** @description Words that the entry contains, each at least in its beginning, in any case: number, ids, who, what, details */
                q?: string;
                /** @description RFC 3339, inclusive */
                since?: string;
                /** @description RFC 3339, exclusive */
                until?: string;
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Entries */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEventList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    recordAuditEvent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AuditFactInput"];
            };
        };
        responses: {
            /** @description Accepted; the entry is appended to the chain when its event has been consumed */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditFactAccepted"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    verifyAudit: {
        parameters: {
            query?: {
                /** @description The caller's tenant, which is the default, or platform for what belongs to no tenant */
                tenant?: components["parameters"]["AuditTenant"];
                /** @description First sequence number */
                from?: number;
                /** @description Last sequence number */
                to?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Result of the verification; an altered chain is also 200 */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditVerdict"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listAuditCheckpoints: {
        parameters: {
            query?: {
                /** @description The caller's tenant, which is the default, or platform for what belongs to no tenant */
                tenant?: components["parameters"]["AuditTenant"];
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Checkpoints */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditCheckpointList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    makeAuditCheckpoint: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The newest entry already had a checkpoint */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditCheckpoint"];
                };
            };
            /** @description Checkpoint created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditCheckpoint"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    acknowledgeAuditFailures: {
        parameters: {
            query?: {
                /** @description The caller's tenant, which is the default, or platform for what belongs to no tenant */
                tenant?: components["parameters"]["AuditTenant"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AuditAcknowledgementInput"];
            };
        };
        responses: {
            /** @description Acknowledged at once, by the legacy token */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditAcknowledgement"];
                };
            };
            /** @description It waits for a second person: POST /governance/changes/{id}/approve */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GuardedChange"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listAuditKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Keys */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditKeyList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    exportAudit: {
        parameters: {
            query?: {
                /** @description The caller's tenant, which is the default, or platform for what belongs to no tenant */
                tenant?: components["parameters"]["AuditTenant"];
                /** @description RFC 3339; the export starts with the first entry at or after this time */
                since?: string;
                /** @description RFC 3339; the export ends with the last entry before this time */
                until?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Header, entries, checkpoints and a signed trailer, one per line. An export without a trailer is truncated. The trailer holds the length of the chain and whether this server verified it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    pushedForgeA: {
        parameters: {
            query?: never;
            header?: {
                /** @description Events other than pushes are skipped */
                "X-Gitlab-Event"?: string;
                /** @description Delivery id; `webhook-id` takes precedence over it, and it over `X-Gitlab-Event-UUID` */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["PushPayload"];
        responses: {
            200: components["responses"]["Pushed"];
            default: components["responses"]["Problem"];
        };
    };
    pushedForgeB: {
        parameters: {
            query?: never;
            header?: {
                /** @description Events other than pushes are skipped */
                "X-GitHub-Event"?: string;
                /** @description Delivery id */
                "X-GitHub-Delivery"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["PushPayload"];
        responses: {
            200: components["responses"]["Pushed"];
            default: components["responses"]["Problem"];
        };
    };
    listModelOwners: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Owners, by model; a model that is not listed belongs to the tenant default */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelOwnerList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listPushes: {
        parameters: {
            query?: {
                limit?: number;
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Push events */
            200: {
                headers: {
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PushEvent"][];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getModelrepoConfig: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["ModelrepoConfig"];
            default: components["responses"]["Problem"];
        };
    };
    putModelrepoConfig: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ModelrepoConfigPatch"];
            };
        };
        responses: {
            200: components["responses"]["ModelrepoConfig"];
            202: components["responses"]["GuardedChange"];
            default: components["responses"]["Problem"];
        };
    };
    getModelImage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
                /** @description A file of the model's images folder: png, jpg, jpeg, gif, webp or svg */
                file: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Image */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "image/png": string;
                    "image/jpeg": string;
                    "image/gif": string;
                    "image/webp": string;
                    "image/svg+xml": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getApprovalDiff: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Diff */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApprovalDiff"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getApprovalEffect: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Effect */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApprovalEffect"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    syncModelrepo: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Result of the poll */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SyncResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    reloadRegistry: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The registry in force on this replica */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReloadResult"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listCosts: {
        parameters: {
            query?: {
                /** @description Model id, any case */
                model?: string;
                project?: string;
                version?: string;
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Costs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CostList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    recordCost: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CostInput"];
            };
        };
        responses: {
            /** @description The record's figures */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CostRecorded"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    costSummary: {
        parameters: {
            query?: {
                by?: components["schemas"]["CostDimension"];
                /** @description Only this model, any case */
                model?: string;
                /** @description Only this project */
                project?: string;
                /** @description Include synthetic figures */
                include_synthetic?: components["parameters"]["IncludeSynthetic"];
                limit?: components["parameters"]["GroupLimit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Summary */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CostSummary"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    carbon: {
        parameters: {
            query?: {
                /** @description Include synthetic figures */
                include_synthetic?: components["parameters"]["IncludeSynthetic"];
                limit?: components["parameters"]["GroupLimit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Carbon */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Carbon"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listBudgets: {
        parameters: {
            query?: {
                /** @description Include synthetic figures */
                include_synthetic?: components["parameters"]["IncludeSynthetic"];
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Budgets */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BudgetList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    putBudget: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                project: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BudgetInput"];
            };
        };
        responses: {
            /** @description Budget */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Budget"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteBudget: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                project: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    listJobs: {
        parameters: {
            query?: {
                cluster?: components["parameters"]["Cluster"];
                /** @description One state, or several with commas; any case */
                state?: string;
                /** @description Model id, any case */
                model?: string;
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Jobs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    jobSummary: {
        parameters: {
            query?: {
                cluster?: components["parameters"]["Cluster"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Facility */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobSummary"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getJob: {
        parameters: {
            query?: {
                scheduler?: components["schemas"]["Scheduler"];
                cluster?: components["parameters"]["Cluster"];
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Job */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    putJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                scheduler: components["schemas"]["Scheduler"];
                /** @description The scheduler's id of the job */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["JobInput"];
            };
        };
        responses: {
            /** @description The record */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listEvals: {
        parameters: {
            query?: {
                /** @description Model id, any case */
                model?: string;
                /** @description true: of each model only its latest run */
                latest?: boolean;
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Evaluation runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EvalList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    recordEval: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EvalInput"];
            };
        };
        responses: {
            /** @description The record */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Eval"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listLLMEndpoints: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Endpoints */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LLMEndpointList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    putLLMEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LLMEndpointInput"];
            };
        };
        responses: {
            /** @description Endpoint */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LLMEndpoint"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteLLMEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    listCompliance: {
        parameters: {
            query?: {
                /** @description Model id, any case */
                model?: string;
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Records */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    putCompliance: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
                version: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ComplianceInput"];
            };
        };
        responses: {
            /** @description Record */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compliance"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listModelCards: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Cards */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelCardList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getModelCard: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Card */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelCard"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    putModelCard: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ModelCardInput"];
            };
        };
        responses: {
            /** @description Card */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelCard"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    posture: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Posture */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Posture"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listGuardedChanges: {
        parameters: {
            query?: {
                state?: "pending" | "applied" | "rejected" | "expired" | "superseded";
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Changes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GuardedChangeList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    approveGuardedChange: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reject"];
        responses: {
            /** @description Applied, or still pending if it was the first of two approvals */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GuardedChange"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    rejectGuardedChange: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["Reject"];
        responses: {
            /** @description Rejected */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GuardedChange"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listAutoRetrain: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Settings */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AutoRetrainList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    putAutoRetrain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AutoRetrainInput"];
            };
        };
        responses: {
            /** @description Current settings */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AutoRetrain"];
                };
            };
            202: components["responses"]["GuardedChange"];
            default: components["responses"]["Problem"];
        };
    };
    triggerDrift: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["DriftTrigger"];
            };
        };
        responses: {
            /** @description Outcome for each model */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriftTriggered"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listAlerts: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Alerts */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    rollbackAlias: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model id, any case */
                model: components["parameters"]["ModelId"];
                /** @description Staging, Canary or Production, any case */
                alias: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RollbackRequest"];
            };
        };
        responses: {
            /** @description Rolled back */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rollback"];
                };
            };
            /** @description Decided; the tracker does not answer, and the move is retried until it does */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rollback"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Status */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Status"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listOutbox: {
        parameters: {
            query?: {
                state?: "poison" | "pending" | "published";
                limit?: components["parameters"]["Limit"];
                /** @description Opaque: next_cursor of the previous page of this list; empty is the first page, any other text is 422 */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OutboxPage"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    republishOutbox: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RepublishRequest"];
            };
        };
        responses: {
            /** @description Number of events now waiting for the relay */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Republished"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    dropEvent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Discarded */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    replayEvent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: components["parameters"]["RecordId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The event, pending again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OutboxEvent"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
}
