// Generated from clients/go/inference/openapi.yaml by tools/types.mjs. DO NOT EDIT.
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
        /** Report whether this replica may receive traffic; 200 once the registry's aliases were scanned (public) */
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
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List loaded and failed models; always 200 (public) */
        get: operations["health"];
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
        /**
         * List loaded models [predict]
         * @description By default those under Production; `alias=*` lists every alias, any other value only that alias.
         */
        get: operations["listModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/predict/{model_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Predict one row [predict]
         * @description The keys of `features` must be exactly the columns the model was trained on, in any order.
         *     The version is `version`, else that of `alias`, else that of the alias that the traffic rules
         *     choose, else Production's.
         */
        post: operations["predict"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/infer-pipeline/infer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Predict one job from its embedding [predict]
         * @description The members are at the top level of the body, or under `features`.
         */
        post: operations["inferPipeline"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Name and extensions of the server [predict] */
        get: operations["v2Server"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/health/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Report whether the process is alive (public) */
        get: operations["v2Live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/health/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Report whether this replica has loaded what the registry names (public) */
        get: operations["v2Ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/repository/index": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** List loaded versions and those that failed to load [predict] */
        post: operations["v2Index"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/models/{model_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Inputs and outputs of a model's graph [predict] */
        get: operations["v2Model"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/models/{model_name}/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Report whether a model is loaded [predict] */
        get: operations["v2ModelReady"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/models/{model_name}/infer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Predict up to 1,024 rows, given as tensors [predict]
         * @description The tensors are the graph's inputs by name, or one tensor per column, or the one tensor `input`
         *     `[N, F]` with all columns side by side in the order of GET /models. With the header
         *     `Inference-Header-Content-Length`, binary tensors follow the JSON part (Triton's extension for binary
         *     data). All rows are answered, or none: `errors` names the rows that failed. The body has at most 8 MiB.
         */
        post: operations["v2Infer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/models/{model_name}/versions/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Inputs and outputs of a model's graph [predict] */
        get: operations["v2ModelVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/models/{model_name}/versions/{version}/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Report whether a version is loaded, without loading it [predict] */
        get: operations["v2ModelReadyVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v2/models/{model_name}/versions/{version}/infer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Predict up to 1,024 rows, given as tensors [predict]
         * @description The tensors are the graph's inputs by name, or one tensor per column, or the one tensor `input`
         *     `[N, F]` with all columns side by side in the order of GET /models. With the header
         *     `Inference-Header-Content-Length`, binary tensors follow the JSON part (Triton's extension for binary
         *     data). All rows are answered, or none: `errors` names the rows that failed. The body has at most 8 MiB.
         */
        post: operations["v2InferVersion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/reload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Compare all aliases with the registry now [admin] */
        post: operations["reload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/reload/{model_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Compare one model's aliases with the registry now [admin] */
        post: operations["reloadModel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drift/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compare recent predictions with the baseline [predict] */
        get: operations["driftStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drift/input/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare recent inputs with their baseline [predict]
         * @description As `/drift/status`, of norm, mean and standard deviation of each request's input: of its first vector, or of
         *     its numeric columns, scaled by those of the training rows. `statistics` has all three; `z_score` and
         *     `measures` are the worst of them, `live_mean` and the other moments and `recent` are of the norm. Requests
         *     that were refused because an input is not finite count as well.
         */
        get: operations["inputDriftStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drift/input/{model_name}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Which inputs moved, and how far, with histograms of both samples [predict]
         * @description Compares each column that is no vector, the first 64 of the model, and the three statistics, those that moved
         *     furthest first. Columns decide nothing: alerts and retraining follow the status.
         */
        get: operations["inputDriftReport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drift/input/{model_name}/baseline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set the newest 1,000 inputs as the baseline [admin] */
        post: operations["setInputDriftBaseline"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drift/input/{model_name}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Compare inputs from now on; predictions and baseline stay [admin] */
        post: operations["resetInputDrift"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/series/{model_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stored predictions of a model over time, one point per step [predict]
         * @description Made of the stored predictions: the newest 10,000 of a model and alias, at most 30 days old. Before the
         *     oldest of them nothing is known, and every value is null. `latency_p95` is that of
         *     the answer times, in milliseconds.
         */
        get: operations["series"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drift/{model_name}/baseline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set the newest 500 predictions as the baseline [admin] */
        post: operations["setDriftBaseline"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drift/{model_name}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Delete the recent predictions and keep the baseline [admin] */
        post: operations["resetDrift"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/traffic-rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Traffic rules by model [predict] */
        get: operations["listTrafficRules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/traffic-rules/{model_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Traffic rules of one model [predict] */
        get: operations["getTrafficRule"];
        /** The same as POST [admin] */
        put: operations["putTrafficRule"];
        /**
         * Share out the requests of a model among its aliases [admin]
         * @description Applies to requests that name neither version nor alias. The split is sticky by the header
         *     `X-Routing-Key`, else the request's `user_id`, else its principal, else its id. A request whose
         *     alias is not loaded gets Production.
         */
        post: operations["setTrafficRule"];
        /** Delete the rules; all requests get Production again [admin] */
        delete: operations["deleteTrafficRule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/shadow-rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shadow rules by model [predict] */
        get: operations["listShadowRules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/shadow-rules/{model_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shadow rule of one model [predict] */
        get: operations["getShadowRule"];
        /**
         * Let another alias score a share of a model's requests beside the answer [admin]
         * @description The answer does not wait for it and is not changed by it. What the alias predicts is recorded under it,
         *     with source `shadow`. What exceeds the pool is dropped and counted in `shadow_total`.
         */
        put: operations["setShadowRule"];
        post?: never;
        /** Delete the rule [admin] */
        delete: operations["deleteShadowRule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/tracker": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compare a model's aliases with the registry when its tracker reports that they moved (signed)
         * @description A webhook of MLflow 3, signed with TRACKER_WEBHOOK_SECRET: `X-MLflow-Signature` is `v1,` and the base64
         *     HMAC-SHA256 of delivery id, timestamp and body, joined by dots. The timestamp may be 300 s off.
         */
        post: operations["trackerWebhook"];
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
         * List the outbox's events in order of creation [admin]
         * @description Those of the caller's tenant and of `platform`.
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
         * Republish the events created in a time window [admin]
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
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Drop a poison event [admin]
         * @description The audit ledger keeps its name, tenant, error and SHA-256. An event that is not poison is a 409.
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
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Replay an event with its full number of attempts [admin] */
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
            /** @description Below /v2: the detail, where clients of that protocol look for it */
            error?: string;
            /** @description With `model_not_loaded`: the models that are loaded */
            loaded?: string[];
        } & {
            [key: string]: unknown;
        };
        FieldFault: {
            loc: string[];
            msg: string;
        };
        Health: {
            /**
             * @description `degraded` when no Production model is loaded
             * @enum {string}
             */
            status: "ok" | "degraded";
            models_loaded: number;
            residency?: components["schemas"]["Residency"];
            /** @description Production copies by upper-case name */
            models: {
                [key: string]: components["schemas"]["HealthModel"];
            };
            /** @description Aliases whose newest version could not be loaded */
            failed?: components["schemas"]["LoadFailure"][];
            tracker?: components["schemas"]["TrackerState"];
            /** @description How each model with an alias that is kept loaded follows the registry, by name */
            followers?: components["schemas"]["Follower"][];
        };
        /** @description How many of the registry's aliases are loaded now */
        Residency: {
            resident: number;
            known: number;
            /** @description `MODELS_RESIDENT_MAX`; 0: no limit */
            max: number;
        };
        Follower: {
            model: string;
            /** @description Age of the last comparison of its aliases with the registry */
            compared_seconds_ago?: number;
            /** @description Version that is on its way */
            loading_version?: string;
            /** @description How long it has been */
            loading_seconds?: number;
        };
        TrackerState: {
            /** @description Whether the last scan succeeded and is not overdue */
            ok: boolean;
            /** Format: date-time */
            last_scan_at?: string;
            /** @description Age of the last scan that was carried through */
            last_scan_seconds_ago?: number;
            last_error?: string;
        };
        HealthModel: {
            version: string;
            run_id: string;
            /** @enum {string} */
            status: "ok";
            /** @description Alias to loaded version */
            aliases: {
                [key: string]: string;
            };
            /** @description Why the newest version is not being served */
            last_error?: string;
        };
        LoadedModel: {
            model_name: string;
            model_version: string;
            run_id: string;
            /**
             * @description `taken_out`, only with `alias=*`: a run took too long; `last_error` says more
             * @enum {string}
             */
            status: "ok" | "taken_out";
            /** @description Why it was taken out of service */
            last_error?: string;
            /** @description Why /predict cannot serve it and /v2 can; absent if both can */
            tensors_only?: string;
            alias: string;
            /**
             * @description `onnx` runs in the service, `pyfunc` at a scoring server
             * @enum {string}
             */
            flavor: "onnx" | "pyfunc";
            /** @description SHA-256 of the artifact as loaded */
            digest?: string;
            /** @description Whether the digest matched the one registered with the version */
            verified: boolean;
            /** Format: date-time */
            loaded_at: string;
            /** @description The version's tag */
            data_origin?: string;
            /** @description Trained on generated dummy rows */
            dummy?: boolean;
            inputs: components["schemas"]["Column"][];
            output: components["schemas"]["Output"];
        };
        Column: {
            name: string;
            /** @enum {string} */
            kind: "number" | "integer" | "boolean" | "category" | "vector";
            /** @description Numbers in a vector */
            length?: number;
            /** @description The number may be missing; it is sent as null */
            optional?: boolean;
        };
        Output: {
            /** @enum {string} */
            kind: "number" | "label";
            unit?: string;
            labels?: unknown[];
        };
        PredictRequest: {
            /** @description Column to value: a number, boolean, string (category) or fixed-length list of numbers; null for an optional number that is missing */
            features: {
                [key: string]: unknown;
            };
            /** @description Production, Canary or Staging, any case */
            alias?: string;
            /** @description A version number; takes precedence over alias */
            version?: string;
            /**
             * @description Also return the classes' probabilities
             * @default false
             */
            probabilities: boolean;
        };
        PipelineFeatures: {
            embedding: number[];
            num_nodes: number;
            /** @description A string or a number */
            user_id?: unknown;
            job_id?: string;
            /** @default JPCP */
            model_name: string;
            alias?: string;
            version?: string;
        };
        PipelineRequest: {
            features?: components["schemas"]["PipelineFeatures"];
            embedding?: number[];
            num_nodes?: number;
            /** @description A string or a number */
            user_id?: unknown;
            job_id?: string;
            /** @default JPCP */
            model_name: string;
            alias?: string;
            version?: string;
        };
        Prediction: {
            model_name: string;
            model_version: string;
            run_id: string;
            /** @description A number or a class label */
            prediction: unknown;
            /** @description The alias that chose the version; absent when the request named a version */
            alias?: string;
            unit?: string;
            /** @description Class label to probability */
            probabilities?: {
                [key: string]: number;
            };
            /** @description Of /infer-pipeline/infer: as sent */
            job_id?: string;
        };
        V2Server: {
            name: string;
            version: string;
            extensions: string[];
        };
        V2Live: {
            live: boolean;
        };
        V2Ready: {
            ready: boolean;
        };
        V2ModelReady: {
            name: string;
            ready: boolean;
        };
        V2TensorInfo: {
            name: string;
            /** @enum {string} */
            datatype: "FP16" | "BF16" | "FP32" | "FP64" | "INT8" | "INT16" | "INT32" | "INT64" | "UINT8" | "UINT16" | "UINT32" | "UINT64" | "BOOL" | "BYTES";
            shape: number[];
        };
        V2Model: {
            name: string;
            /** @description The version that these inputs and outputs are of */
            versions: string[];
            platform: string;
            inputs: components["schemas"]["V2TensorInfo"][];
            outputs: components["schemas"]["V2TensorInfo"][];
        };
        V2IndexRequest: {
            /** @description Only those that answer */
            ready?: boolean;
        } & {
            [key: string]: unknown;
        };
        V2IndexEntry: {
            name: string;
            version: string;
            /** @enum {string} */
            state: "READY" | "UNAVAILABLE";
            alias: string;
            /** @description Why the alias does not hold the version */
            reason: string;
        };
        V2InferRequest: {
            /** @description Comes back in the response */
            id?: string;
            /** @description `alias` (Production, Canary, Staging), `timeout` in microseconds, `binary_data_output`; others are ignored */
            parameters?: {
                [key: string]: unknown;
            };
            inputs: components["schemas"]["V2Tensor"][];
            /** @description Those that are wanted; all if absent */
            outputs?: components["schemas"]["V2OutputRequest"][];
        };
        V2Tensor: {
            name: string;
            /** @enum {string} */
            datatype: "FP16" | "BF16" | "FP32" | "FP64" | "INT8" | "INT16" | "INT32" | "INT64" | "UINT8" | "UINT16" | "UINT32" | "UINT64" | "BOOL" | "BYTES";
            shape: number[];
            /** @description Flat, or nested by the shape; absent if `parameters` has `binary_data_size` */
            data?: unknown[];
            parameters?: {
                [key: string]: unknown;
            };
        };
        V2OutputRequest: {
            name: string;
            /** @description `binary_data`: true for binary data */
            parameters?: {
                [key: string]: unknown;
            };
        };
        V2InferResponse: {
            model_name: string;
            model_version: string;
            id?: string;
            /** @description `alias` that chose the version; `answer`, the name of the output that is the prediction of each row, as `/predict` chooses it, if the model has one and it is among the outputs */
            parameters?: {
                [key: string]: unknown;
            };
            outputs: components["schemas"]["V2Tensor"][];
        };
        Reloaded: {
            /** @description Models with an alias that was loaded or unloaded */
            reloaded: string[];
            /** @description Length of reloaded */
            count: number;
            unchanged: string[];
            failed: components["schemas"]["LoadFailure"][];
        };
        LoadFailure: {
            model: string;
            alias: string;
            version?: string;
            reason: string;
        };
        AliasChoice: {
            /**
             * @description Any case
             * @default Production
             */
            alias: string;
        };
        DriftBaseline: {
            model: string;
            alias: string;
            n: number;
            /**
             * Format: double
             * @description Null for non-numeric labels
             */
            mean: number | null;
            /** Format: double */
            std: number | null;
            /** Format: date-time */
            set_at: string;
        };
        DriftReset: {
            deleted: number;
        };
        /**
         * @description Percent by alias (Production, Canary, Staging, in a request in any case), 100 in all
         * @example {
         *       "Production": 90,
         *       "Canary": 10
         *     }
         */
        TrafficWeights: {
            [key: string]: number;
        };
        TrafficRule: {
            model: string;
            rules: components["schemas"]["TrafficWeights"];
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        TrafficRuleList: {
            items: components["schemas"]["TrafficRule"][];
            /** @description Cursor of the next page; null on the last */
            next_cursor: string | null;
        };
        TrafficChange: {
            model: string;
            rules: components["schemas"]["TrafficWeights"];
            /** @description Always true; every replica follows within a second */
            applied: boolean;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
            /** @description Aliases in the rules that have no version loaded */
            warnings: string[];
        };
        TrackerDelivery: {
            model?: string;
            skipped?: boolean;
            reason?: string;
        };
        ShadowRequest: {
            /** @description Production, Canary or Staging, any case */
            alias: string;
            /** @description Of the requests that another alias answers */
            percent: number;
        };
        ShadowRule: {
            model: string;
            alias: string;
            percent: number;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
        };
        ShadowRuleList: {
            items: components["schemas"]["ShadowRule"][];
            /** @description Cursor of the next page; null on the last */
            next_cursor: string | null;
        };
        ShadowChange: {
            model: string;
            alias: string;
            percent: number;
            /** @description Always true; every replica follows within a second */
            applied: boolean;
            /** Format: date-time */
            updated_at: string;
            updated_by: string;
            /** @description Why nothing is scored yet */
            warnings: string[];
        };
        DriftMeasure: {
            status: components["schemas"]["DriftLevel"];
            /** Format: double */
            value?: number | null;
            /** Format: double */
            p_value?: number | null;
        };
        DriftReport: {
            model: string;
            alias: string;
            /** @description As in the status of inputs */
            overall: components["schemas"]["DriftLevel"];
            reason?: string;
            n_snapshots: number;
            n_baseline: number;
            /** Format: date-time */
            baseline_set_at?: string;
            /** @description norm, mean and std of the inputs; empty if one is not finite */
            statistics: components["schemas"]["DriftFeature"][];
            /** @description Columns by name */
            features: components["schemas"]["DriftFeature"][];
        };
        DriftFeature: {
            name: string;
            /** @enum {string} */
            kind: "number" | "category";
            /** @description The level of z_score alone */
            status: components["schemas"]["DriftLevel"];
            /** @description The worst measure's level */
            overall: components["schemas"]["DriftLevel"];
            decided_by?: string;
            reason?: string;
            /** Format: double */
            z_score?: number | null;
            /** Format: double */
            live_mean?: number | null;
            /** Format: double */
            live_std?: number | null;
            /** Format: double */
            baseline_mean?: number | null;
            /** Format: double */
            baseline_std?: number | null;
            n: number;
            n_baseline: number;
            measures: {
                [key: string]: components["schemas"]["DriftMeasure"];
            };
            histogram: components["schemas"]["DriftHistogram"];
        };
        DriftHistogram: {
            /** @description Of numbers: one more than bins */
            edges?: number[];
            /** @description Of categories; (other) combines all that are not listed */
            classes?: string[];
            /** @description Share of the window in each bin or class */
            live: number[];
            /** @description Share of the baseline in each bin or class */
            baseline: number[];
        };
        DriftStatistic: {
            /** @description The level of z_score alone */
            status: components["schemas"]["DriftLevel"];
            /** @description The worst measure's level */
            overall: components["schemas"]["DriftLevel"];
            /** Format: double */
            z_score?: number | null;
            /** Format: double */
            live_mean?: number | null;
            /** Format: double */
            live_std?: number | null;
            /** Format: double */
            baseline_mean?: number | null;
            /** Format: double */
            baseline_std?: number | null;
            measures: {
                [key: string]: components["schemas"]["DriftMeasure"];
            };
        };
        /** @enum {string} */
        DriftLevel: "OK" | "WARNING" | "CRITICAL" | "NO_BASELINE" | "INSUFFICIENT" | "CORRUPT";
        DriftStatus: {
            model: string;
            alias: string;
            /** @description Version of the newest snapshot */
            version: string;
            /** @description The level of z_score alone */
            status: components["schemas"]["DriftLevel"];
            /** @description The worst measure's level, used by alerts and retraining after drift */
            overall: components["schemas"]["DriftLevel"];
            /** @description The measure that decided overall (z_score, psi, ks, wasserstein); absent if overall is OK or nothing was compared */
            decided_by?: string;
            /** Format: double */
            z_score?: number | null;
            /** Format: double */
            z_se?: number | null;
            /**
             * Format: double
             * @description Null without snapshots and for non-numeric labels
             */
            live_mean: number | null;
            /** Format: double */
            live_std: number | null;
            /** Format: double */
            baseline_mean?: number | null;
            /** Format: double */
            baseline_std?: number | null;
            n_snapshots: number;
            n_baseline: number;
            /** @description z_score, psi, ks, wasserstein, each with its own status */
            measures: {
                [key: string]: components["schemas"]["DriftMeasure"];
            };
            reason?: string;
            /** @description Of inputs: which of norm, mean and std decided overall, or has the largest z_score if that is OK */
            statistic?: string;
            /** @description Of inputs: norm, mean and std, each compared alone */
            statistics?: {
                [key: string]: components["schemas"]["DriftStatistic"];
            };
            /** @description The newest 24 predictions (of inputs their norms, null where not finite), oldest first */
            recent: unknown[];
            /** Format: date-time */
            baseline_set_at?: string;
            /**
             * Format: date-time
             * @description Time of the newest snapshot; absent without snapshots
             */
            newest_at?: string;
        };
        /** @enum {string} */
        SeriesMetric: "prediction_mean" | "z_score" | "requests" | "latency_p95";
        SeriesPoint: {
            /**
             * Format: date-time
             * @description Start of the step
             */
            at: string;
            /**
             * Format: double
             * @description Null where nothing was measured
             */
            value: number | null;
        };
        Series: {
            model: string;
            alias: string;
            metric: components["schemas"]["SeriesMetric"];
            /** @description Of the model's predictions; absent if unknown */
            unit?: string;
            /** Format: date-time */
            from: string;
            /** Format: date-time */
            to: string;
            /** @description Seconds */
            step: number;
            /** Format: double */
            baseline_mean?: number | null;
            /** Format: double */
            baseline_std?: number | null;
            points: components["schemas"]["SeriesPoint"][];
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
            /** @description Null if it exceeds 16384 bytes */
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
        /** @description The prediction */
        Prediction: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Prediction"];
            };
        };
        /** @description What changed */
        Reloaded: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Reloaded"];
            };
        };
        /** @description `model_not_loaded`, with the reason and the loaded models */
        NotLoaded: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `validation_error`: the body is not a request, or a value has the wrong type; the model was not called */
        Invalid: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_tensors`: names, datatypes, shapes or data are not what the model takes; `errors` lists each fault, the model was not called */
        InvalidTensors: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `feature_shape_mismatch`: keys or list lengths differ from the trained columns, the model was not called; `model_exception`: the model failed */
        PredictionFailed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `draining` or `tracker_unavailable`, with Retry-After */
        Busy: {
            headers: {
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `deadline_exceeded` */
        Late: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
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
        /** @description Model name, any case */
        ModelName: string;
        /** @description 1 marks a probe by a tool: answered like any other request, counted in predict_probes_total, excluded from drift */
        Probe: string;
        /** @description Lowers the deadline of this request */
        Timeout: number;
        /** @description Requests with the same key get the same alias by the traffic rules */
        RoutingKey: string;
        /** @description bus marks a prediction that came over the message bus: its snapshot says so */
        Source: string;
        EventId: string;
        Limit: number;
        /** @description Opaque cursor from the previous page */
        Cursor: string;
    };
    requestBodies: {
        AliasChoice: {
            content: {
                "application/json": components["schemas"]["AliasChoice"];
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
export type Residency = components['schemas']['Residency'];
export type Follower = components['schemas']['Follower'];
export type TrackerState = components['schemas']['TrackerState'];
export type HealthModel = components['schemas']['HealthModel'];
export type LoadedModel = components['schemas']['LoadedModel'];
export type Column = components['schemas']['Column'];
export type Output = components['schemas']['Output'];
export type PredictRequest = components['schemas']['PredictRequest'];
export type PipelineFeatures = components['schemas']['PipelineFeatures'];
export type PipelineRequest = components['schemas']['PipelineRequest'];
export type Prediction = components['schemas']['Prediction'];
export type V2Server = components['schemas']['V2Server'];
export type V2Live = components['schemas']['V2Live'];
export type V2Ready = components['schemas']['V2Ready'];
export type V2ModelReady = components['schemas']['V2ModelReady'];
export type V2TensorInfo = components['schemas']['V2TensorInfo'];
export type V2Model = components['schemas']['V2Model'];
export type V2IndexRequest = components['schemas']['V2IndexRequest'];
export type V2IndexEntry = components['schemas']['V2IndexEntry'];
export type V2InferRequest = components['schemas']['V2InferRequest'];
export type V2Tensor = components['schemas']['V2Tensor'];
export type V2OutputRequest = components['schemas']['V2OutputRequest'];
export type V2InferResponse = components['schemas']['V2InferResponse'];
export type Reloaded = components['schemas']['Reloaded'];
export type LoadFailure = components['schemas']['LoadFailure'];
export type AliasChoice = components['schemas']['AliasChoice'];
export type DriftBaseline = components['schemas']['DriftBaseline'];
export type DriftReset = components['schemas']['DriftReset'];
export type TrafficWeights = components['schemas']['TrafficWeights'];
export type TrafficRule = components['schemas']['TrafficRule'];
export type TrafficRuleList = components['schemas']['TrafficRuleList'];
export type TrafficChange = components['schemas']['TrafficChange'];
export type TrackerDelivery = components['schemas']['TrackerDelivery'];
export type ShadowRequest = components['schemas']['ShadowRequest'];
export type ShadowRule = components['schemas']['ShadowRule'];
export type ShadowRuleList = components['schemas']['ShadowRuleList'];
export type ShadowChange = components['schemas']['ShadowChange'];
export type DriftMeasure = components['schemas']['DriftMeasure'];
export type DriftReport = components['schemas']['DriftReport'];
export type DriftFeature = components['schemas']['DriftFeature'];
export type DriftHistogram = components['schemas']['DriftHistogram'];
export type DriftStatistic = components['schemas']['DriftStatistic'];
export type DriftLevel = components['schemas']['DriftLevel'];
export type DriftStatus = components['schemas']['DriftStatus'];
export type SeriesMetric = components['schemas']['SeriesMetric'];
export type SeriesPoint = components['schemas']['SeriesPoint'];
export type Series = components['schemas']['Series'];
export type OutboxEvent = components['schemas']['OutboxEvent'];
export type OutboxPage = components['schemas']['OutboxPage'];
export type RepublishRequest = components['schemas']['RepublishRequest'];
export type Republished = components['schemas']['Republished'];
export type ResponseAlive = components['responses']['Alive'];
export type ResponseReadiness = components['responses']['Readiness'];
export type ResponsePrediction = components['responses']['Prediction'];
export type ResponseReloaded = components['responses']['Reloaded'];
export type ResponseNotLoaded = components['responses']['NotLoaded'];
export type ResponseInvalid = components['responses']['Invalid'];
export type ResponseInvalidTensors = components['responses']['InvalidTensors'];
export type ResponsePredictionFailed = components['responses']['PredictionFailed'];
export type ResponseBusy = components['responses']['Busy'];
export type ResponseLate = components['responses']['Late'];
export type ResponseProblem = components['responses']['Problem'];
export type ParameterModelName = components['parameters']['ModelName'];
export type ParameterProbe = components['parameters']['Probe'];
export type ParameterTimeout = components['parameters']['Timeout'];
export type ParameterRoutingKey = components['parameters']['RoutingKey'];
export type ParameterSource = components['parameters']['Source'];
export type ParameterEventId = components['parameters']['EventId'];
export type ParameterLimit = components['parameters']['Limit'];
export type ParameterCursor = components['parameters']['Cursor'];
export type RequestBodyAliasChoice = components['requestBodies']['AliasChoice'];
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
        };
    };
    listModels: {
        parameters: {
            query?: {
                /** @description `*`, Production, Canary or Staging, any case */
                alias?: string;
                limit?: components["parameters"]["Limit"];
                /** @description Opaque cursor from the previous page */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Loaded models by name, then alias */
            200: {
                headers: {
                    /** @description Cursor of the next page; absent on the last */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoadedModel"][];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    predict: {
        parameters: {
            query?: never;
            header?: {
                /** @description Lowers the deadline of this request */
                "X-Request-Timeout-Ms"?: components["parameters"]["Timeout"];
                /** @description 1 marks a probe by a tool: answered like any other request, counted in predict_probes_total, excluded from drift */
                "X-Platform-Probe"?: components["parameters"]["Probe"];
                /** @description Requests with the same key get the same alias by the traffic rules */
                "X-Routing-Key"?: components["parameters"]["RoutingKey"];
                /** @description bus marks a prediction that came over the message bus: its snapshot says so */
                "X-Platform-Source"?: components["parameters"]["Source"];
            };
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PredictRequest"];
            };
        };
        responses: {
            200: components["responses"]["Prediction"];
            404: components["responses"]["NotLoaded"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["PredictionFailed"];
            503: components["responses"]["Busy"];
            504: components["responses"]["Late"];
            default: components["responses"]["Problem"];
        };
    };
    inferPipeline: {
        parameters: {
            query?: never;
            header?: {
                /** @description Lowers the deadline of this request */
                "X-Request-Timeout-Ms"?: components["parameters"]["Timeout"];
                /** @description 1 marks a probe by a tool: answered like any other request, counted in predict_probes_total, excluded from drift */
                "X-Platform-Probe"?: components["parameters"]["Probe"];
                /** @description Requests with the same key get the same alias by the traffic rules */
                "X-Routing-Key"?: components["parameters"]["RoutingKey"];
                /** @description bus marks a prediction that came over the message bus: its snapshot says so */
                "X-Platform-Source"?: components["parameters"]["Source"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PipelineRequest"];
            };
        };
        responses: {
            200: components["responses"]["Prediction"];
            404: components["responses"]["NotLoaded"];
            422: components["responses"]["Invalid"];
            500: components["responses"]["PredictionFailed"];
            503: components["responses"]["Busy"];
            504: components["responses"]["Late"];
            default: components["responses"]["Problem"];
        };
    };
    v2Server: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2Server"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    v2Live: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2Live"];
                };
            };
        };
    };
    v2Ready: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2Ready"];
                };
            };
            503: components["responses"]["Problem"];
        };
    };
    v2Index: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["V2IndexRequest"];
            };
        };
        responses: {
            /** @description One entry per model and alias */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2IndexEntry"][];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    v2Model: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Names, datatypes and shapes; -1 is the number of rows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2Model"];
                };
            };
            404: components["responses"]["NotLoaded"];
            default: components["responses"]["Problem"];
        };
    };
    v2ModelReady: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The model answers */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2ModelReady"];
                };
            };
            404: components["responses"]["NotLoaded"];
            default: components["responses"]["Problem"];
        };
    };
    v2Infer: {
        parameters: {
            query?: never;
            header?: {
                /** @description Lowers the deadline of this request */
                "X-Request-Timeout-Ms"?: components["parameters"]["Timeout"];
                /** @description 1 marks a probe by a tool: answered like any other request, counted in predict_probes_total, excluded from drift */
                "X-Platform-Probe"?: components["parameters"]["Probe"];
                /** @description Requests with the same key get the same alias by the traffic rules */
                "X-Routing-Key"?: components["parameters"]["RoutingKey"];
                /** @description bus marks a prediction that came over the message bus: its snapshot says so */
                "X-Platform-Source"?: components["parameters"]["Source"];
                /** @description Bytes of the JSON part, if binary tensors follow it */
                "Inference-Header-Content-Length"?: number;
            };
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["V2InferRequest"];
            };
        };
        responses: {
            /** @description The outputs; with binary outputs as application/octet-stream, JSON part first */
            200: {
                headers: {
                    /** @description Bytes of the JSON part, if binary outputs follow it */
                    "Inference-Header-Content-Length"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2InferResponse"];
                };
            };
            400: components["responses"]["InvalidTensors"];
            404: components["responses"]["NotLoaded"];
            500: components["responses"]["PredictionFailed"];
            503: components["responses"]["Busy"];
            504: components["responses"]["Late"];
            default: components["responses"]["Problem"];
        };
    };
    v2ModelVersion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
                /** @description A version number */
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Names, datatypes and shapes; -1 is the number of rows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2Model"];
                };
            };
            404: components["responses"]["NotLoaded"];
            default: components["responses"]["Problem"];
        };
    };
    v2ModelReadyVersion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
                /** @description A version number */
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The model answers */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2ModelReady"];
                };
            };
            404: components["responses"]["NotLoaded"];
            default: components["responses"]["Problem"];
        };
    };
    v2InferVersion: {
        parameters: {
            query?: never;
            header?: {
                /** @description Lowers the deadline of this request */
                "X-Request-Timeout-Ms"?: components["parameters"]["Timeout"];
                /** @description 1 marks a probe by a tool: answered like any other request, counted in predict_probes_total, excluded from drift */
                "X-Platform-Probe"?: components["parameters"]["Probe"];
                /** @description Requests with the same key get the same alias by the traffic rules */
                "X-Routing-Key"?: components["parameters"]["RoutingKey"];
                /** @description bus marks a prediction that came over the message bus: its snapshot says so */
                "X-Platform-Source"?: components["parameters"]["Source"];
                /** @description Bytes of the JSON part, if binary tensors follow it */
                "Inference-Header-Content-Length"?: number;
            };
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
                /** @description A version number */
                version: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["V2InferRequest"];
            };
        };
        responses: {
            /** @description The outputs; with binary outputs as application/octet-stream, JSON part first */
            200: {
                headers: {
                    /** @description Bytes of the JSON part, if binary outputs follow it */
                    "Inference-Header-Content-Length"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["V2InferResponse"];
                };
            };
            400: components["responses"]["InvalidTensors"];
            404: components["responses"]["NotLoaded"];
            500: components["responses"]["PredictionFailed"];
            503: components["responses"]["Busy"];
            504: components["responses"]["Late"];
            default: components["responses"]["Problem"];
        };
    };
    reload: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Reloaded"];
            default: components["responses"]["Problem"];
        };
    };
    reloadModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Reloaded"];
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    driftStatus: {
        parameters: {
            query?: {
                /** @description Only this model, any case */
                model?: string;
                /** @description Only this alias, any case */
                alias?: string;
                /** @description Number of newest snapshots compared */
                window?: number;
                /** @description Divisor of z_score */
                z_mode?: "spread" | "standard_error";
                limit?: components["parameters"]["Limit"];
                /** @description Opaque cursor from the previous page */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One row per model and alias */
            200: {
                headers: {
                    /** @description Cursor of the next page; absent on the last */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriftStatus"][];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inputDriftStatus: {
        parameters: {
            query?: {
                /** @description Only this model, any case */
                model?: string;
                /** @description Only this alias, any case */
                alias?: string;
                /** @description Number of newest snapshots compared */
                window?: number;
                /** @description Divisor of z_score */
                z_mode?: "spread" | "standard_error";
                limit?: components["parameters"]["Limit"];
                /** @description Opaque cursor from the previous page */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One row per model and alias */
            200: {
                headers: {
                    /** @description Cursor of the next page; absent on the last */
                    "X-Next-Cursor"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriftStatus"][];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    inputDriftReport: {
        parameters: {
            query?: {
                /** @description Any case */
                alias?: string;
                /** @description Number of newest snapshots compared */
                window?: number;
            };
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The window against its baseline */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriftReport"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    setInputDriftBaseline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["AliasChoice"];
        responses: {
            /** @description The baseline; mean and std are those of the norm */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriftBaseline"];
                };
            };
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    resetInputDrift: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["AliasChoice"];
        responses: {
            /** @description Number of inputs that no longer count */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriftReset"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    series: {
        parameters: {
            query: {
                metric: components["schemas"]["SeriesMetric"];
                /** @description Any case */
                alias?: string;
                /** @description RFC 3339, inclusive; default a day before `to` */
                from?: string;
                /** @description RFC 3339, exclusive; default now */
                to?: string;
                /** @description Seconds; raised so that there are at most 500 points */
                step?: number;
            };
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Points, oldest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Series"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    setDriftBaseline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["AliasChoice"];
        responses: {
            /** @description The baseline */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriftBaseline"];
                };
            };
            404: components["responses"]["Problem"];
            409: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    resetDrift: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["AliasChoice"];
        responses: {
            /** @description Number of predictions deleted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriftReset"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listTrafficRules: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque cursor from the previous page */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Models that have rules */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrafficRuleList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getTrafficRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rules */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrafficRule"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    putTrafficRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TrafficWeights"];
            };
        };
        responses: {
            /** @description The rules, at work in every replica within a second */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrafficChange"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    setTrafficRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TrafficWeights"];
            };
        };
        responses: {
            /** @description The rules, at work in every replica within a second */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrafficChange"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteTrafficRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
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
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listShadowRules: {
        parameters: {
            query?: {
                limit?: components["parameters"]["Limit"];
                /** @description Opaque cursor from the previous page */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Models that have a rule */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShadowRuleList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getShadowRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rule */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShadowRule"];
                };
            };
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    setShadowRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ShadowRequest"];
            };
        };
        responses: {
            /** @description The rule, at work in every replica within a second */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShadowChange"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteShadowRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Model name, any case */
                model_name: components["parameters"]["ModelName"];
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
            404: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    trackerWebhook: {
        parameters: {
            query?: never;
            header: {
                "X-MLflow-Signature": string;
                "X-MLflow-Delivery-Id": string;
                /** @description Seconds since 1970 */
                "X-MLflow-Timestamp": string;
            };
            path?: never;
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
            /** @description A delivery that names no model */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrackerDelivery"];
                };
            };
            /** @description The model's aliases are compared next */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrackerDelivery"];
                };
            };
            400: components["responses"]["Problem"];
            401: components["responses"]["Problem"];
            503: components["responses"]["Problem"];
            default: components["responses"]["Problem"];
        };
    };
    listOutbox: {
        parameters: {
            query?: {
                state?: "poison" | "pending" | "published";
                limit?: components["parameters"]["Limit"];
                /** @description Opaque cursor from the previous page */
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
            /** @description Number of events now pending for the relay */
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
                id: components["parameters"]["EventId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Dropped */
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
                id: components["parameters"]["EventId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The event, now pending */
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
