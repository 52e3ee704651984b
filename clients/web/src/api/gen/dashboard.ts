// Generated from clients/go/dashboard/openapi.yaml by tools/types.mjs. DO NOT EDIT.
export interface paths {
    "/livez": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Report whether the process is alive (public) */
        get: operations["livez"];
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
        /** Report whether this replica may receive traffic (public) */
        get: operations["readyz"];
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
    "/api/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Exchange a password for a session token (public) */
        post: operations["login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End the session on every replica (viewer) */
        post: operations["logout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The caller (viewer) */
        get: operations["me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sso/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Providers of the login page (public) */
        get: operations["listProviders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sso/{provider}/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Begin single sign-on, or a step-up (public) */
        get: operations["ssoLogin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sso/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The registered redirect URI (public)
         * @description Answers 302 to `return_to`, or to `/?sso_error=<reason>`. Parameters are the provider's.
         */
        get: operations["ssoCallback"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sso/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End an SSO session (viewer) */
        post: operations["ssoLogout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Health of the platform's services; always 200 (public) */
        get: operations["aggregateHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every key: a string, null, or *** for a secret (viewer) */
        get: operations["getConfig"];
        /** Set or clear (null) some keys, all or none (admin) */
        put: operations["putConfig"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/config/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Metadata of every key (viewer) */
        get: operations["listConfigKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals/{id}/effect": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the caller's approval of a record would do now (viewer) */
        get: operations["getApprovalEffect"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Audit log, newest first (admin) */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/proxy/{service}/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                service: components["schemas"]["ProxyService"];
                /** @description Any path of the service, slashes included */
                path: string;
            };
            cookie?: never;
        };
        /** Read from a tool, its links rewritten (viewer) */
        get: operations["proxyGet"];
        put?: never;
        /** Write to a tool; PUT, PATCH and DELETE likewise (admin) */
        post: operations["proxyPost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/proxy-ticket": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** An address that opens a tool on the tools origin, once, within 30 s (viewer) */
        post: operations["createProxyTicket"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/docs/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Documentation pages by section (viewer) */
        get: operations["docsTree"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/docs/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A page's Markdown (viewer) */
        get: operations["docsContent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Overview (viewer) */
        get: operations["overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Realtime events (viewer) */
        get: operations["stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/mlops/registry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every registered model, or a page of those that match (viewer) */
        get: operations["registry"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/mlops/model/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One model; the name in any case (viewer) */
        get: operations["modelDetail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/mlops/model/{name}/series": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One measure of a model over time (viewer) */
        get: operations["modelSeries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Training runs, newest first, with key metric, cause and cost (viewer) */
        get: operations["runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One run with its parameters and metrics (viewer) */
        get: operations["runDetail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/mlops/promotion/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Promotion gate of a model (viewer) */
        get: operations["promotionGate"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facility/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Allocation and pressure (viewer) */
        get: operations["facilityOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facility/queue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Jobs, longest wait first (viewer) */
        get: operations["facilityQueue"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facility/job/{job_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One job; of two clusters with this id the newest, unless `cluster` names one (viewer) */
        get: operations["facilityJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/flags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Flags as the caller sees them (viewer) */
        get: operations["listFlags"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/flags/admin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Flags with defaults, overrides and targeting (admin) */
        get: operations["listFlagDefinitions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/flags/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Override a flag for the caller's tenant (admin, step-up) */
        post: operations["setFlag"];
        /** Drop the override (admin, step-up) */
        delete: operations["clearFlag"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ofrep/v1/evaluate/flags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** OpenFeature Remote Evaluation of all flags; the context is the caller's, never the body's (viewer) */
        post: operations["ofrepEvaluateAll"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ofrep/v1/evaluate/flags/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** OpenFeature Remote Evaluation of one flag (viewer) */
        post: operations["ofrepEvaluate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/collab/{type}/{id}/comments": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                type: components["parameters"]["EntityType"];
                id: components["parameters"]["EntityId"];
            };
            cookie?: never;
        };
        /** Comments of an entity, oldest first (viewer) */
        get: operations["listComments"];
        put?: never;
        /** Comment on an entity (viewer) */
        post: operations["addComment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/collab/{type}/{id}/comments/{comment_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a comment; its author and admins may (viewer) */
        delete: operations["deleteComment"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/collab/{type}/{id}/activity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The newest comments and audit facts of an entity, oldest of them first; next_cursor leads to older ones (viewer) */
        get: operations["listActivity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/collab/snapshot": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Freeze a view behind an expiring token (viewer) */
        post: operations["createSnapshot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/collab/snapshot/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The frozen view (viewer) */
        get: operations["getSnapshot"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/copilot/ask": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ask a question about the cluster; proposals are never executed (viewer) */
        post: operations["askCopilot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/assistant/chat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ask the assistant and stream its answer, frame by frame (viewer) */
        post: operations["assistantChat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/assistant/clusters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The clusters that the assistant answers about, the default first (viewer) */
        get: operations["assistantClusters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/assistant/sessions/{session}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The frames of a session again, and those that follow (viewer) */
        get: operations["assistantReplay"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/assistant/sessions/{session}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A session of the caller's (viewer) */
        get: operations["assistantSession"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/assistant/sessions/{session}/actions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Proposed changes of a session (viewer) */
        get: operations["assistantActions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/assistant/sessions/{session}/actions/{action_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve or reject a proposed change (admin, step-up) */
        post: operations["assistantDecide"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Alert inbox, worst first (viewer) */
        get: operations["listAlerts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/alerts/{alert_id}/ack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Acknowledge an alert (viewer) */
        post: operations["ackAlert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/inbox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Mentions of the caller, approvals that others requested and the caller may decide, and alerts; newest first (viewer) */
        get: operations["listInbox"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/inbox/read-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Mark all notices up to a time as read (viewer) */
        post: operations["readInbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/inbox/{id}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Mark a notice as read (viewer) */
        post: operations["readNotice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/channels": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Notification channels of the tenant, with what they last did (admin) */
        get: operations["listChannels"];
        put?: never;
        /** Add a notification channel; the signing secret of a webhook is shown this once (admin, step-up) */
        post: operations["addChannel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/channels/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Change a notification channel; without url the address stays (admin, step-up) */
        put: operations["changeChannel"];
        post?: never;
        /** Delete a notification channel with what waits for it (admin, step-up) */
        delete: operations["deleteChannel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/channels/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a test over a notification channel now (admin) */
        post: operations["testChannel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/llmops/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Hosted language models and evaluations (viewer) */
        get: operations["llmOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/governance/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Controls, compliance, model cards and the ledger (viewer) */
        get: operations["governanceOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/finops/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Cost, budgets and carbon (viewer) */
        get: operations["finopsOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/selfobs/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Dependencies and recent requests of this replica (viewer) */
        get: operations["selfStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/selfobs/action": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Record an action of the UI in the audit ledger (viewer) */
        post: operations["recordAction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Search models, runs, approvals, alerts and documentation (viewer) */
        get: operations["search"];
        put?: never;
        post?: never;
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
            /** @enum {string} */
            status: "alive";
        };
        Readiness: {
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
        /** @enum {string} */
        Role: "viewer" | "admin";
        LoginRequest: {
            password: string;
        };
        Login: {
            token: string;
            role: components["schemas"]["Role"];
            /** Format: date-time */
            expires_at: string;
            tenant: string;
        };
        Identity: {
            sub: string;
            name?: string;
            idp?: string;
            role: components["schemas"]["Role"];
            tenant: string;
            /** @description Sorted */
            capabilities: string[];
            /** @enum {string} */
            auth_method: "password" | "sso" | "idp-bearer";
            acr?: string;
            /** Format: date-time */
            auth_time: string;
            /** Format: date-time */
            expires_at: string;
            /** @description A local login although providers are configured */
            break_glass: boolean;
        };
        Provider: {
            name: string;
            display_name: string;
            login_url: string;
            step_up: boolean;
            cli?: components["schemas"]["ProviderCLI"];
        };
        /** @description How a command line signs in there, as a public client with PKCE; absent without one */
        ProviderCLI: {
            issuer: string;
            client_id: string;
            scopes: string[];
        };
        Providers: {
            providers: components["schemas"]["Provider"][];
            local_login: boolean;
        };
        SSOLogout: {
            ok: boolean;
            end_session_url?: string;
        };
        ServiceHealth: {
            /** @enum {string} */
            status: "ok" | "degraded" | "down" | "unknown";
            /** @description The published address */
            url?: string;
            note?: string;
        };
        AggregateHealth: {
            /** @enum {string} */
            status: "ok" | "degraded" | "down" | "unknown";
            /** Format: date-time */
            checked_at: string;
            /** @description Keys tracker, orchestrator, serving, metrics_store, dashboards, scheduler, bus, bus_sim */
            services: {
                [key: string]: components["schemas"]["ServiceHealth"];
            };
            unmeasured: string[];
        };
        Config: {
            [key: string]: string | null;
        };
        ConfigKey: {
            key: string;
            is_secret: boolean;
            has_value: boolean;
            /** Format: date-time */
            updated_at?: string;
            updated_by?: string;
            /** @enum {string} */
            type: "url" | "text" | "secret";
            description: string;
            /** @enum {string} */
            source: "stored" | "environment" | "default";
        };
        AuditEntry: {
            id: string;
            /**
             * Format: int64
             * @description Its number in the tenant's ledger, without gaps from 1
             */
            seq: number;
            request_id?: string;
            /** Format: date-time */
            at: string;
            actor: string;
            role?: string;
            action: string;
            key?: string;
            target: string;
            source: string;
            outcome: string;
            details: {
                [key: string]: unknown;
            };
            hash: string;
        };
        AuditPage: {
            items: components["schemas"]["AuditEntry"][];
            total: number;
            next_cursor: string | null;
        };
        /** @enum {string} */
        ProxyService: "tracker" | "orchestrator" | "serving" | "serving_dashboard" | "metrics_store" | "dashboards" | "control_plane";
        TicketRequest: {
            service: string;
        };
        Ticket: {
            url: string;
        };
        DocsFile: {
            path: string;
            title: string;
        };
        DocsSection: {
            key: string;
            title: string;
            files: components["schemas"]["DocsFile"][];
        };
        /** @description As the control plane has it: GET /approvals/{id}/effect */
        ApprovalEffect: {
            /** Format: uuid */
            approval_id: string;
            /** @enum {string} */
            kind: "retrain" | "promotion";
            model_id: string;
            decidable: boolean;
            /** @description What approving does, for the button */
            action: string;
            /** @description What happens, in order */
            sentences: string[];
        } & {
            [key: string]: unknown;
        };
        SourceState: {
            /**
             * @description What the figures of this source are; those of a source that is not measured or failed are absent, never 0
             * @enum {string}
             */
            state: "measured" | "not_measured" | "failed";
            /** @enum {string} */
            status: "ok" | "timeout" | "error" | "skipped";
            ms: number;
            /**
             * Format: date-time
             * @description Since when the figures are known, if they were measured
             */
            as_of?: string;
            /** @description Why nothing was measured, if state is not_measured */
            reason?: string;
            /** @description What failed, if state is failed */
            error?: string;
        };
        Freshness: {
            /** @description Sources without an answer */
            _partial?: string[];
            /** Format: date-time */
            _as_of?: string;
            _sources?: {
                [key: string]: components["schemas"]["SourceState"];
            };
        };
        Overview: components["schemas"]["Freshness"] & {
            meta: {
                service: string;
                api: string;
            };
            traffic?: {
                models_with_rules: number;
            };
            drift?: {
                models_tracked: number;
            };
            audit?: {
                total_events: number;
            };
        };
        /** @description What a source without an answer would have told is missing, and health is unknown */
        RegistryRow: {
            name: string;
            trackerName: string;
            version: number | null;
            /** @enum {string} */
            stage: "Production" | "Canary" | "Staging" | "none";
            /** @enum {string} */
            health: "ok" | "warn" | "unknown";
            /**
             * @description Of health: critical from |z| 3 on, and if a reason is critical, corrupt or not served
             * @enum {string}
             */
            severity: "critical" | "warn" | "unknown" | "ok";
            /**
             * Format: date-time
             * @description Newest of version change, snapshot and traffic change
             */
            freshness?: string;
            governed?: boolean;
            aliases?: {
                [key: string]: number;
            };
            /** @enum {string} */
            freshnessStatus?: "current" | "stale" | "unknown";
            healthReasons?: string[];
            /** @description Whether serving answers with the version that is set as Production; absent while that is not known, or without one */
            served?: boolean;
            /** @description Level of the worst measure under stage, as mlp drift status has it; absent while that is not known, or of another version */
            driftStatus?: string;
            /**
             * Format: double
             * @description Of version; null or absent while that is not measured
             */
            zScore?: number | null;
            /** @description Recent mean predictions of version, oldest first */
            trend?: number[];
            /** @description Present while the newest predictions under stage are those of another version than the one that stands there now */
            earlier?: components["schemas"]["EarlierDrift"];
            description?: string;
        };
        /** @description Figures that were measured of another version */
        EarlierDrift: {
            version: number;
            /** Format: double */
            zScore?: number | null;
        };
        Registry: {
            /** @description Models of the registry */
            count: number;
            rows: components["schemas"]["RegistryRow"][];
            /** @description Models that match, on all pages */
            matching: number;
            /** @description Models with a version in Production */
            served: number;
            /** @description Models of the registry by severity */
            severities: {
                [key: string]: number;
            };
            next_cursor: string | null;
        };
        RegistryView: components["schemas"]["Freshness"] & {
            registry: components["schemas"]["Registry"];
        };
        ModelCost: {
            runs: number;
            /** Format: double */
            gpu_hours: number;
            /** Format: double */
            cost_usd: number;
            /**
             * Format: double
             * @description Cost of mock runs; in no total
             */
            synthetic_cost_usd?: number;
        };
        ModelDrift: {
            samples: number;
            /** Format: double */
            mean_prediction: number | null;
            /** Format: date-time */
            latest: string | null;
            /** Format: double */
            zScore?: number | null;
            status?: string;
            overall?: string;
            /** @description The version that the figures were measured of */
            version?: number;
            /** Format: double */
            baselineMean?: number | null;
            measures?: {
                [key: string]: unknown;
            }[];
        };
        ModelTraffic: {
            configured: boolean;
            /** @description Percent by alias */
            rules: {
                [key: string]: number;
            };
            /** Format: date-time */
            updated_at: string | null;
        };
        ModelVersion: {
            version: number;
            aliases: string[];
            runId: string;
            /** Format: date-time */
            createdAt: string;
            metrics?: {
                [key: string]: number;
            };
            params?: {
                [key: string]: string;
            };
            tags?: {
                [key: string]: string;
            };
        };
        /**
         * @description A figure has a value only if it was measured; reason tells why it was not, or what failed. The times of measurement are those of its source in _sources
         * @enum {string}
         */
        FigureState: "measured" | "not_measured" | "failed";
        /** @description The metric that the model's promotion policy judges by */
        RunMetric: {
            state: components["schemas"]["FigureState"];
            reason?: string;
            name?: string;
            /**
             * @description The metric's direction, from the policy's operator
             * @enum {string}
             */
            better?: "lower" | "higher";
            /** Format: double */
            value?: number;
        };
        /** @description The key metric against that of the version in Production */
        RunChange: {
            state: components["schemas"]["FigureState"];
            reason?: string;
            /** @description The version in Production */
            version?: string;
            /**
             * Format: double
             * @description Its metric
             */
            from?: number;
            /**
             * Format: double
             * @description The run's metric less that of Production
             */
            difference?: number;
            /** @enum {string} */
            verdict?: "better" | "worse" | "equal";
        };
        RunCost: {
            state: components["schemas"]["FigureState"];
            reason?: string;
            /** Format: double */
            usd?: number;
            /** Format: double */
            gpu_hours?: number;
            /** @description Estimated for a mock scheduler, not billed */
            synthetic?: boolean;
        };
        /** @enum {string} */
        RunCause: "change" | "drift" | "manual" | "dummy" | "other";
        RunRow: {
            flow_run_id: string;
            model_id: string;
            dataset_name: string;
            /** @description As the control plane records it */
            origin: string;
            cause: components["schemas"]["RunCause"];
            state_type: string;
            /** @description Why it ended as it did */
            reason?: string;
            /** @description On generated rows */
            is_dummy: boolean;
            /** @description The version was trained on generated rows */
            is_generated?: boolean;
            /** @description Who asked for it */
            requester?: string;
            approved_by?: string;
            commit_sha: string | null;
            /** Format: uuid */
            approval_id: string | null;
            model_version: string | null;
            tracker_run_id?: string;
            /** Format: date-time */
            dispatched_at?: string;
            /** Format: date-time */
            started_at: string | null;
            /** Format: date-time */
            ended_at: string | null;
            /**
             * Format: double
             * @description From start to end; absent while it runs, and if it never started
             */
            duration_s?: number;
            metric: components["schemas"]["RunMetric"];
            change: components["schemas"]["RunChange"];
            cost: components["schemas"]["RunCost"];
        };
        RunsView: components["schemas"]["Freshness"] & {
            /** @description Absent if the control plane gave no answer */
            runs?: {
                items: components["schemas"]["RunRow"][];
                /** @description There are older runs, which are not listed */
                truncated: boolean;
            };
        };
        /** @description What the tracker recorded of a run */
        RunRecord: {
            state: components["schemas"]["FigureState"];
            reason?: string;
            experiment_id?: string;
            params?: {
                [key: string]: string;
            };
            metrics?: {
                [key: string]: number;
            };
        };
        RunView: components["schemas"]["Freshness"] & {
            run?: components["schemas"]["RunRow"];
            record?: components["schemas"]["RunRecord"];
        };
        AliasMove: {
            alias: string;
            version?: number | null;
            previousVersion?: number | null;
            /** Format: date-time */
            from: string;
            /** Format: date-time */
            to?: string | null;
            actor: string;
            via: string;
        };
        GateCheck: {
            name: string;
            pass: boolean;
            detail?: string;
        };
        GateMetric: {
            /** Format: double */
            value: number;
            /** Format: double */
            baseline?: number | null;
            /** Format: double */
            threshold?: number | null;
            passed: boolean;
        };
        Promotion: {
            model: string;
            trackerName: string;
            version?: number | null;
            policy: {
                allow: boolean;
                reasons: string[];
            };
            eval: {
                pass: boolean;
                /** @enum {string} */
                state?: "passed" | "failed" | "not_run";
                metrics: {
                    [key: string]: components["schemas"]["GateMetric"];
                };
            };
            approval: {
                required: boolean;
                state: string;
            };
            allowed: boolean;
            checks?: components["schemas"]["GateCheck"][];
        };
        PromotionView: components["schemas"]["Freshness"] & {
            promotion: components["schemas"]["Promotion"];
        };
        ModelDetail: {
            name: string;
            trackerName: string;
            description?: string;
            cost?: components["schemas"]["ModelCost"];
            drift?: components["schemas"]["ModelDrift"];
            traffic?: components["schemas"]["ModelTraffic"];
            promotion?: components["schemas"]["Promotion"];
            /** @description Newest first */
            versions?: components["schemas"]["ModelVersion"][];
            /** @description Newest first */
            aliasHistory?: components["schemas"]["AliasMove"][];
        };
        ModelView: components["schemas"]["Freshness"] & {
            detail: components["schemas"]["ModelDetail"];
        };
        /** @enum {string} */
        SeriesMetric: "prediction_mean" | "z_score" | "requests" | "latency_p95" | "cost_usd";
        Series: components["schemas"]["Freshness"] & {
            metric: components["schemas"]["SeriesMetric"];
            unit: string;
            /** @description Pairs of milliseconds since 1970 and the value, null where none was measured */
            points: (number | null)[][];
            /** @description warning, critical, baseline, where the measure has them */
            thresholds: {
                [key: string]: number;
            };
        };
        Partition: {
            name: string;
            running: number;
            queued: number;
            gpusAllocated: number;
        };
        Facility: {
            nodesAllocated: number;
            gpusAllocated: number;
            jobsRunning: number;
            queueDepth: number;
            clusters: string[];
            partitions: components["schemas"]["Partition"][];
        };
        FacilityView: components["schemas"]["Freshness"] & {
            facility: components["schemas"]["Facility"];
        };
        QueueJob: {
            id: string;
            cluster: string;
            model: string | null;
            dataset: string | null;
            state: string;
            waitSec: number;
            nodes: number;
            gpus: number;
            /** Format: date-time */
            submitTime: string | null;
            partition?: string;
        };
        Queue: {
            count: number;
            jobs: components["schemas"]["QueueJob"][];
        };
        QueueView: components["schemas"]["Freshness"] & {
            queue: components["schemas"]["Queue"];
        };
        Job: {
            id: string;
            cluster: string;
            model: string | null;
            dataset: string | null;
            state: string;
            resources: {
                nodes: number;
                gpus: number;
                cpus: number;
            };
            timing: {
                /** Format: date-time */
                submit: string | null;
                /** Format: date-time */
                start: string | null;
                /** Format: date-time */
                end: string | null;
                queueSeconds: number | null;
                runSeconds: number | null;
            };
            exitCode: number | null;
            flowRunId: string | null;
            /** @description Links to cost records and the tracker */
            trackerRunId: string | null;
        };
        JobView: components["schemas"]["Freshness"] & {
            job?: components["schemas"]["Job"];
        };
        CallerFlags: {
            flags: {
                [key: string]: boolean;
            };
        };
        Targeting: {
            tenants: string[];
            roles: string[];
            percentage: number;
        };
        AdminFlag: {
            name: string;
            description: string;
            default: boolean;
            override: boolean | null;
            /** @description For the caller */
            effective: boolean;
            targeting: components["schemas"]["Targeting"];
            tags: string[];
            /** Format: date-time */
            updated_at?: string;
            updated_by?: string;
        };
        AdminFlags: {
            flags: components["schemas"]["AdminFlag"][];
            count: number;
        };
        FlagOverride: {
            enabled: boolean;
        };
        FlagChange: {
            /** @description False for an unknown flag */
            updated: boolean;
            name: string;
            enabled: boolean;
        };
        OFREPFlag: {
            key: string;
            value?: boolean;
            /** @enum {string} */
            reason?: "DISABLED" | "STATIC" | "SPLIT" | "TARGETING_MATCH";
            variant?: string;
            errorCode?: string;
            errorDetails?: string;
        };
        OFREPFlags: {
            flags: components["schemas"]["OFREPFlag"][];
        };
        NewComment: {
            /** @description 1 to 4,000 characters */
            body: string;
        };
        Comment: {
            /** Format: uuid */
            id: string;
            author: string;
            author_name?: string;
            /** @description Sanitized; safe as HTML */
            body: string;
            /** @description Rendered Markdown; safe as HTML */
            bodyHtml?: string;
            mentions: string[];
            /** Format: date-time */
            created_at: string;
            deleted?: boolean;
        };
        Comments: {
            comments: components["schemas"]["Comment"][];
            next_cursor?: string | null;
        };
        Activity: {
            /** @enum {string} */
            kind: "comment" | "audit";
            actor: string;
            /** Format: date-time */
            ts: string;
            detail: string;
        };
        Activities: components["schemas"]["Freshness"] & {
            activity: components["schemas"]["Activity"][];
            next_cursor?: string | null;
        };
        NewSnapshot: {
            /** @description At most 64 KiB, 16 levels */
            view: {
                [key: string]: unknown;
            };
            /** @default 168 */
            ttl_hours: number;
        };
        SnapshotToken: {
            token: string;
            /** Format: date-time */
            expires_at: string;
        };
        Snapshot: {
            found: boolean;
            view?: {
                [key: string]: unknown;
            };
            read_only?: boolean;
            /** Format: date-time */
            expires_at?: string;
            created_by?: string;
        };
        CopilotContext: {
            page?: string;
            entity?: {
                [key: string]: unknown;
            };
            filters?: {
                [key: string]: unknown;
            };
        };
        CopilotQuestion: {
            /** @description 1 to 4,000 characters */
            question: string;
            context?: components["schemas"]["CopilotContext"];
        };
        Proposal: {
            command: string;
            requiresApproval: boolean;
        };
        TraceEntry: {
            kind: string;
            name: string;
            detail: string;
        };
        CopilotAnswer: {
            answer: string;
            hitl_required: boolean;
            proposals: components["schemas"]["Proposal"][];
            trace: components["schemas"]["TraceEntry"][];
            _partial?: string[];
            error_code?: string;
        };
        AssistantQuestion: {
            /** @description 1 to 4,000 characters. No word in it decides; see assistantDecide */
            question: string;
            /** @description The session to continue; empty begins one */
            session?: string;
            /** @description The cluster of a new session, one of assistantClusters; empty selects the first. A session keeps its cluster: 409 other_cluster for another */
            cluster?: string;
            context?: components["schemas"]["CopilotContext"];
        };
        AssistantClusters: {
            /** @description Empty where there is one cluster that is not configured by name */
            clusters: string[];
        };
        Alert: {
            id: string;
            /** @description drift, budget or eval; also others of the control plane, such as deploy */
            source: string;
            /** @enum {string} */
            severity: "critical" | "error" | "warn";
            /** @enum {string} */
            state: "firing" | "acknowledged" | "resolved";
            title: string;
            labels: {
                [key: string]: string;
            };
            /** Format: date-time */
            since?: string;
            acked_by?: string;
            /** Format: date-time */
            acked_at?: string;
            /** Format: date-time */
            resolved_at?: string;
        };
        AlertInbox: {
            count: number;
            counts: {
                critical: number;
                error: number;
                warn: number;
            };
            unacknowledged?: number;
            /** @description The source did not answer; these are the last known values */
            stale?: boolean;
            alerts: components["schemas"]["Alert"][];
        };
        Inbox: {
            unread: number;
            items: components["schemas"]["Notice"][];
            next_cursor?: string;
        };
        /** @enum {string} */
        NoticeKind: "mention" | "approval" | "alert";
        Notice: {
            /** Format: uuid */
            id: string;
            kind: components["schemas"]["NoticeKind"];
            title: string;
            /** @description The page in the web UI */
            path: string;
            /** Format: date-time */
            at: string;
            unread: boolean;
            author?: string;
            /** @description How it ended, such as approved, resolved or removed; absent while it waits */
            outcome?: string;
        };
        /** @enum {string} */
        NotificationEvent: "approval.requested" | "approval.decided" | "alert" | "mention";
        /** @enum {string} */
        ChannelKind: "webhook" | "slack" | "email";
        Channel: {
            /** Format: uuid */
            id: string;
            name: string;
            kind: components["schemas"]["ChannelKind"];
            events: components["schemas"]["NotificationEvent"][];
            enabled: boolean;
            /** @description Of the address; the rest of it is a secret */
            host?: string;
            recipients?: string[];
            created_by: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
            /** @description Messages that the receiver has not accepted yet */
            waiting: number;
            /** @description Messages that were not accepted within a day; forgotten after 30 days */
            abandoned: number;
            /** Format: date-time */
            last_success_at?: string;
            /** Format: date-time */
            last_error_at?: string;
            last_error?: string;
        };
        Channels: {
            channels: components["schemas"]["Channel"][];
            mail_configured: boolean;
            /** @description host:port that an address may name (DASHBOARD_NOTIFY_ALLOW) */
            allowed_hosts: string[];
        };
        ChannelWrite: {
            name: string;
            kind: components["schemas"]["ChannelKind"];
            events: components["schemas"]["NotificationEvent"][];
            /** @default true */
            enabled: boolean;
            /** @description Of webhook and slack; stored encrypted and never shown again */
            url?: string;
            /** @description Mail addresses of email */
            recipients?: string[];
        };
        ChannelCreated: {
            channel: components["schemas"]["Channel"];
            /** @description Signs the bodies of a webhook (Standard Webhooks); shown this once */
            secret?: string;
        };
        ChannelTest: {
            delivered: boolean;
            error?: string;
        };
        AlertView: components["schemas"]["Freshness"] & {
            inbox: components["schemas"]["AlertInbox"];
        };
        Ack: {
            acked: boolean;
            audited: boolean;
            acked_by?: string;
            /** Format: date-time */
            acked_at?: string;
        };
        LLMEndpoint: {
            model: string;
            engine: string;
            hostedModelId: string;
            maxModelLen: number;
            tensorParallel: number;
            dtype: string;
            enabled: boolean;
        };
        EvalMetric: {
            metric: string;
            /** Format: double */
            value: number;
            /** Format: double */
            baseline: number | null;
            passed: boolean;
        };
        EvalModel: {
            model: string;
            suite: string;
            status: string;
            metrics: components["schemas"]["EvalMetric"][];
            /** Format: double */
            passRate: number | null;
        };
        LLMView: components["schemas"]["Freshness"] & {
            endpoints: {
                rows: components["schemas"]["LLMEndpoint"][];
                count: number;
            };
            evals: {
                models: components["schemas"]["EvalModel"][];
                count: number;
            };
        };
        Control: {
            control: string;
            function: string;
            title: string;
            /** @enum {string} */
            status: "satisfied" | "partial" | "gap";
            evidence: string[];
        };
        ComplianceRow: {
            model: string;
            version: string;
            riskClass: string;
            technicalFile: boolean;
            provenance: boolean;
        };
        LedgerEntry: {
            /** Format: int64 */
            seq: number;
            hash: string;
            prevHash: string;
            /** Format: date-time */
            ts?: string;
            actor?: string;
            action?: string;
            target?: string;
            outcome?: string;
            /** @description The training run that the fact is about */
            run?: string;
        };
        GovernanceView: components["schemas"]["Freshness"] & {
            posture?: {
                controls: components["schemas"]["Control"][];
                satisfied: number;
                total: number;
                statement?: string;
            };
            compliance?: {
                rows: components["schemas"]["ComplianceRow"][];
                count: number;
            };
            cards?: {
                withCard: number;
                withoutCard: number;
                /** Format: double */
                coverage: number;
                total: number;
            };
            audit?: {
                count: number;
                headDigest: string;
                verified: boolean | null;
                /** Format: date-time */
                verifiedAt?: string | null;
                checked?: number | null;
                entries: components["schemas"]["LedgerEntry"][];
            };
        };
        CostRow: {
            dimension: string;
            key: string;
            /** Format: double */
            gpuHours: number;
            /** Format: double */
            costUsd: number;
            runs: number;
        };
        BudgetRow: {
            project: string;
            period: string;
            /** Format: double */
            costRatio: number | null;
            overBudget: boolean;
            /** Format: double */
            budgetUsd?: number | null;
            /** Format: double */
            spentUsd?: number;
        };
        FinOpsView: components["schemas"]["Freshness"] & {
            cost?: {
                rows: components["schemas"]["CostRow"][];
                /** Format: double */
                total_gpu_hours: number;
                /** Format: double */
                total_cost_usd: number;
            };
            budget?: {
                budgets: components["schemas"]["BudgetRow"][];
                /** Format: double */
                consumed_cost_usd: number;
            };
            carbon?: {
                totals: {
                    /** Format: double */
                    kwh: number;
                    /** Format: double */
                    co2e_g: number;
                };
                /** Format: double */
                co2e_kg: number;
                /** Format: double */
                uncertainty: number;
                methodology: string;
            };
            unitEconomics?: {
                /** Format: double */
                costPerTrainingRun: number | null;
            };
        };
        Dependency: {
            name: string;
            /** @enum {string} */
            status: "up" | "down";
            /** Format: double */
            latencyMs?: number;
        };
        SelfStatus: {
            /** @enum {string} */
            status: "up" | "degraded";
            dependencies: components["schemas"]["Dependency"][];
            metrics: {
                requests: number;
                errors: number;
                clientErrors: number;
                rateLimitHits: number;
                latencyMs: {
                    count: number;
                    /** Format: double */
                    p50: number | null;
                    /** Format: double */
                    p95: number | null;
                };
            };
        };
        UIAction: {
            action: string;
            target: string;
            details?: string;
        };
        Audited: {
            audited: boolean;
        };
        SearchResult: {
            kind: string;
            id: string;
            label: string;
            url: string;
            score: number;
            source: string;
        };
        SearchView: components["schemas"]["Freshness"] & {
            search: {
                query: string;
                count: number;
                results: components["schemas"]["SearchResult"][];
                groups: {
                    [key: string]: components["schemas"]["SearchResult"][];
                };
            };
        };
    };
    responses: {
        /** @description As If-None-Match names */
        NotModified: {
            headers: {
                [name: string]: unknown;
            };
            content?: never;
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
        /** @description All keys; the ETag is for If-Match */
        Config: {
            headers: {
                ETag?: string;
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Config"];
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
        Limit: number;
        /** @description Opaque next_cursor of the previous page */
        Cursor: string;
        /** @description Model name, any case */
        Model: string;
        Cluster: string;
        EntityType: string;
        EntityId: string;
        Session: string;
    };
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Alive = components['schemas']['Alive'];
export type Readiness = components['schemas']['Readiness'];
export type Problem = components['schemas']['Problem'];
export type FieldFault = components['schemas']['FieldFault'];
export type Role = components['schemas']['Role'];
export type LoginRequest = components['schemas']['LoginRequest'];
export type Login = components['schemas']['Login'];
export type Identity = components['schemas']['Identity'];
export type Provider = components['schemas']['Provider'];
export type ProviderCli = components['schemas']['ProviderCLI'];
export type Providers = components['schemas']['Providers'];
export type SsoLogout = components['schemas']['SSOLogout'];
export type ServiceHealth = components['schemas']['ServiceHealth'];
export type AggregateHealth = components['schemas']['AggregateHealth'];
export type Config = components['schemas']['Config'];
export type ConfigKey = components['schemas']['ConfigKey'];
export type AuditEntry = components['schemas']['AuditEntry'];
export type AuditPage = components['schemas']['AuditPage'];
export type ProxyService = components['schemas']['ProxyService'];
export type TicketRequest = components['schemas']['TicketRequest'];
export type Ticket = components['schemas']['Ticket'];
export type DocsFile = components['schemas']['DocsFile'];
export type DocsSection = components['schemas']['DocsSection'];
export type ApprovalEffect = components['schemas']['ApprovalEffect'];
export type SourceState = components['schemas']['SourceState'];
export type Freshness = components['schemas']['Freshness'];
export type Overview = components['schemas']['Overview'];
export type RegistryRow = components['schemas']['RegistryRow'];
export type EarlierDrift = components['schemas']['EarlierDrift'];
export type Registry = components['schemas']['Registry'];
export type RegistryView = components['schemas']['RegistryView'];
export type ModelCost = components['schemas']['ModelCost'];
export type ModelDrift = components['schemas']['ModelDrift'];
export type ModelTraffic = components['schemas']['ModelTraffic'];
export type ModelVersion = components['schemas']['ModelVersion'];
export type FigureState = components['schemas']['FigureState'];
export type RunMetric = components['schemas']['RunMetric'];
export type RunChange = components['schemas']['RunChange'];
export type RunCost = components['schemas']['RunCost'];
export type RunCause = components['schemas']['RunCause'];
export type RunRow = components['schemas']['RunRow'];
export type RunsView = components['schemas']['RunsView'];
export type RunRecord = components['schemas']['RunRecord'];
export type RunView = components['schemas']['RunView'];
export type AliasMove = components['schemas']['AliasMove'];
export type GateCheck = components['schemas']['GateCheck'];
export type GateMetric = components['schemas']['GateMetric'];
export type Promotion = components['schemas']['Promotion'];
export type PromotionView = components['schemas']['PromotionView'];
export type ModelDetail = components['schemas']['ModelDetail'];
export type ModelView = components['schemas']['ModelView'];
export type SeriesMetric = components['schemas']['SeriesMetric'];
export type Series = components['schemas']['Series'];
export type Partition = components['schemas']['Partition'];
export type Facility = components['schemas']['Facility'];
export type FacilityView = components['schemas']['FacilityView'];
export type QueueJob = components['schemas']['QueueJob'];
export type Queue = components['schemas']['Queue'];
export type QueueView = components['schemas']['QueueView'];
export type Job = components['schemas']['Job'];
export type JobView = components['schemas']['JobView'];
export type CallerFlags = components['schemas']['CallerFlags'];
export type Targeting = components['schemas']['Targeting'];
export type AdminFlag = components['schemas']['AdminFlag'];
export type AdminFlags = components['schemas']['AdminFlags'];
export type FlagOverride = components['schemas']['FlagOverride'];
export type FlagChange = components['schemas']['FlagChange'];
export type OfrepFlag = components['schemas']['OFREPFlag'];
export type OfrepFlags = components['schemas']['OFREPFlags'];
export type NewComment = components['schemas']['NewComment'];
export type Comment = components['schemas']['Comment'];
export type Comments = components['schemas']['Comments'];
export type Activity = components['schemas']['Activity'];
export type Activities = components['schemas']['Activities'];
export type NewSnapshot = components['schemas']['NewSnapshot'];
export type SnapshotToken = components['schemas']['SnapshotToken'];
export type Snapshot = components['schemas']['Snapshot'];
export type CopilotContext = components['schemas']['CopilotContext'];
export type CopilotQuestion = components['schemas']['CopilotQuestion'];
export type Proposal = components['schemas']['Proposal'];
export type TraceEntry = components['schemas']['TraceEntry'];
export type CopilotAnswer = components['schemas']['CopilotAnswer'];
export type AssistantQuestion = components['schemas']['AssistantQuestion'];
export type AssistantClusters = components['schemas']['AssistantClusters'];
export type Alert = components['schemas']['Alert'];
export type AlertInbox = components['schemas']['AlertInbox'];
export type Inbox = components['schemas']['Inbox'];
export type NoticeKind = components['schemas']['NoticeKind'];
export type Notice = components['schemas']['Notice'];
export type NotificationEvent = components['schemas']['NotificationEvent'];
export type ChannelKind = components['schemas']['ChannelKind'];
export type Channel = components['schemas']['Channel'];
export type Channels = components['schemas']['Channels'];
export type ChannelWrite = components['schemas']['ChannelWrite'];
export type ChannelCreated = components['schemas']['ChannelCreated'];
export type ChannelTest = components['schemas']['ChannelTest'];
export type AlertView = components['schemas']['AlertView'];
export type Ack = components['schemas']['Ack'];
export type LlmEndpoint = components['schemas']['LLMEndpoint'];
export type EvalMetric = components['schemas']['EvalMetric'];
export type EvalModel = components['schemas']['EvalModel'];
export type LlmView = components['schemas']['LLMView'];
export type Control = components['schemas']['Control'];
export type ComplianceRow = components['schemas']['ComplianceRow'];
export type LedgerEntry = components['schemas']['LedgerEntry'];
export type GovernanceView = components['schemas']['GovernanceView'];
export type CostRow = components['schemas']['CostRow'];
export type BudgetRow = components['schemas']['BudgetRow'];
export type FinOpsView = components['schemas']['FinOpsView'];
export type Dependency = components['schemas']['Dependency'];
export type SelfStatus = components['schemas']['SelfStatus'];
export type UiAction = components['schemas']['UIAction'];
export type Audited = components['schemas']['Audited'];
export type SearchResult = components['schemas']['SearchResult'];
export type SearchView = components['schemas']['SearchView'];
export type ResponseNotModified = components['responses']['NotModified'];
export type ResponseAlive = components['responses']['Alive'];
export type ResponseReadiness = components['responses']['Readiness'];
export type ResponseConfig = components['responses']['Config'];
export type ResponseProblem = components['responses']['Problem'];
export type ParameterLimit = components['parameters']['Limit'];
export type ParameterCursor = components['parameters']['Cursor'];
export type ParameterModel = components['parameters']['Model'];
export type ParameterCluster = components['parameters']['Cluster'];
export type ParameterEntityType = components['parameters']['EntityType'];
export type ParameterEntityId = components['parameters']['EntityId'];
export type ParameterSession = components['parameters']['Session'];
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
    login: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginRequest"];
            };
        };
        responses: {
            /** @description The token */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Login"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    logout: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ended */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Identity */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listProviders: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Providers */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Providers"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    ssoLogin: {
        parameters: {
            query?: {
                /** @description A path of this origin outside /api/; anything else becomes / */
                return_to?: string;
                step_up?: boolean;
            };
            header?: never;
            path: {
                provider: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the provider */
            302: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    ssoCallback: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the requested page */
            302: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    ssoLogout: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ended here; end_session_url ends it at the provider */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SSOLogout"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    aggregateHealth: {
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
                    "application/json": components["schemas"]["AggregateHealth"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getConfig: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Config"];
            default: components["responses"]["Problem"];
        };
    };
    putConfig: {
        parameters: {
            query?: never;
            header?: {
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Config"];
            };
        };
        responses: {
            200: components["responses"]["Config"];
            default: components["responses"]["Problem"];
        };
    };
    listConfigKeys: {
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
                    "application/json": components["schemas"]["ConfigKey"][];
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
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The control plane's answer to GET /approvals/{id}/effect */
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
    listAudit: {
        parameters: {
            query?: {
                limit?: number;
                offset?: number;
                /** @description Opaque next_cursor of the previous page */
                cursor?: components["parameters"]["Cursor"];
                model?: string;
                action?: string;
                source?: string;
                actor?: string;
                /** @description Words that the entry contains, each at least in its beginning, in any case */
                q?: string;
                since?: string;
                until?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    proxyGet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                service: components["schemas"]["ProxyService"];
                /** @description Any path of the service, slashes included */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tool's answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    proxyPost: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                service: components["schemas"]["ProxyService"];
                /** @description Any path of the service, slashes included */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tool's answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    createProxyTicket: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TicketRequest"];
            };
        };
        responses: {
            /** @description The address */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ticket"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    docsTree: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Sections */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DocsSection"][];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    docsContent: {
        parameters: {
            query: {
                path: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Markdown */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    overview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Overview */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    stream: {
        parameters: {
            query?: {
                /** @description At most 20 globs, separated by commas; a bare namespace means all of it */
                channels?: string;
            };
            header?: {
                "Last-Event-ID"?: string;
            };
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
                    "text/event-stream": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    registry: {
        parameters: {
            query?: {
                /** @description Rows of a page; without it, all */
                limit?: number;
                /** @description Opaque next_cursor of the previous page */
                cursor?: components["parameters"]["Cursor"];
                /** @description Part of name, description or a reason of health, in any case */
                q?: string;
                view?: "all" | "attention" | "unmeasured";
                /** @description Aliases that are set, or none, separated by commas */
                stage?: string;
                /** @description current, stale or unknown, separated by commas */
                freshness?: string;
                /** @description name, health (worst first), version, z, freshness or governed; with - in front, the other way. Rows without a value come last */
                sort?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Registry */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    modelDetail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                name: components["parameters"]["Model"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The model */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    modelSeries: {
        parameters: {
            query: {
                metric: components["schemas"]["SeriesMetric"];
                /** @description Default a day before `to` */
                from?: string;
                /** @description Default now */
                to?: string;
                /** @description Seconds between points; raised so that no more than 500 are returned */
                step?: number;
            };
            header?: never;
            path: {
                /** @description Model name, any case */
                name: components["parameters"]["Model"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Points */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Series"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    runs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The newest 5,000 runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunsView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    runDetail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The orchestrator's id */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    promotionGate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                name: components["parameters"]["Model"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The gate */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PromotionView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    facilityOverview: {
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
                    "application/json": components["schemas"]["FacilityView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    facilityQueue: {
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
            /** @description Queue */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    facilityJob: {
        parameters: {
            query?: {
                cluster?: components["parameters"]["Cluster"];
            };
            header?: never;
            path: {
                job_id: string;
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
                    "application/json": components["schemas"]["JobView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    listFlags: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Flags */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CallerFlags"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listFlagDefinitions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Flags */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminFlags"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    setFlag: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FlagOverride"];
            };
        };
        responses: {
            /** @description What changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FlagChange"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    clearFlag: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What holds now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FlagChange"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    ofrepEvaluateAll: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Evaluations */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OFREPFlags"];
                };
            };
            /** @description As If-None-Match names */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    ofrepEvaluate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Evaluation */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OFREPFlag"];
                };
            };
            /** @description FLAG_NOT_FOUND */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OFREPFlag"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listComments: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque next_cursor of the previous page */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path: {
                type: components["parameters"]["EntityType"];
                id: components["parameters"]["EntityId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Comments */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Comments"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    addComment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                type: components["parameters"]["EntityType"];
                id: components["parameters"]["EntityId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewComment"];
            };
        };
        responses: {
            /** @description The comment */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Comment"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteComment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                type: components["parameters"]["EntityType"];
                id: components["parameters"]["EntityId"];
                comment_id: string;
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
    listActivity: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque next_cursor of the previous page */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path: {
                type: components["parameters"]["EntityType"];
                id: components["parameters"]["EntityId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Activity */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Activities"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    createSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSnapshot"];
            };
        };
        responses: {
            /** @description The token */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SnapshotToken"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The view, or found false */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Snapshot"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    askCopilot: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CopilotQuestion"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CopilotAnswer"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    assistantChat: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AssistantQuestion"];
            };
        };
        responses: {
            /** @description The assistant's frames; X-Session-ID names the session */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    assistantClusters: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Names */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AssistantClusters"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    assistantReplay: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                session: components["parameters"]["Session"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The assistant's frames */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    assistantSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                session: components["parameters"]["Session"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The assistant's document */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    assistantActions: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque next_cursor of the previous page */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path: {
                session: components["parameters"]["Session"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The assistant's document */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    assistantDecide: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                session: components["parameters"]["Session"];
                action_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description The assistant's answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listAlerts: {
        parameters: {
            query?: {
                /** @description Default firing and acknowledged */
                state?: "resolved" | "all";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Inbox */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    ackAlert: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                alert_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Acknowledged */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ack"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listInbox: {
        parameters: {
            query?: {
                /** @description Only those that the caller has not read and that have not ended */
                unread?: "true" | "false";
                limit?: components["parameters"]["Limit"];
                /** @description Opaque next_cursor of the previous page */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Inbox */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Inbox"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    readInbox: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: date-time
                     * @description The time of the newest notice that the person has seen
                     */
                    until: string;
                };
            };
        };
        responses: {
            /** @description Marked */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    readNotice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Marked */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    listChannels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Channels */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Channels"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    addChannel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChannelWrite"];
            };
        };
        responses: {
            /** @description Added */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChannelCreated"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    changeChannel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChannelWrite"];
            };
        };
        responses: {
            /** @description Changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Channel"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteChannel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    testChannel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Outcome */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChannelTest"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    llmOverview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Overview */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LLMView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    governanceOverview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Overview */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GovernanceView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    finopsOverview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Overview */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FinOpsView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
    selfStatus: {
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
                    "application/json": components["schemas"]["SelfStatus"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    recordAction: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UIAction"];
            };
        };
        responses: {
            /** @description Whether it was recorded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Audited"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    search: {
        parameters: {
            query?: {
                q?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Results */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchView"];
                };
            };
            304: components["responses"]["NotModified"];
            default: components["responses"]["Problem"];
        };
    };
}
