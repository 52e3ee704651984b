// Answers in the shapes of the OpenAPI documents, for work on the UI without its services. Not shipped.

const now = Date.now();
const MIN = 60_000;
const HOUR = 60 * MIN;
const DAY = 24 * HOUR;
const at = (ago) => new Date(now - ago).toISOString();
const uuid = (n) => `018f3a00-0000-7000-8000-${String(n).padStart(12, '0')}`;

function random(seed) {
  let s = seed;
  return () => (s = (s * 1664525 + 1013904223) >>> 0) / 4294967296;
}
function wander(seed, n, mean, width, rise = 0) {
  const r = random(seed * 7919 + 1);
  let v = 0;
  return Array.from({ length: n }, (_, i) => {
    v = v * 0.7 + (r() - 0.5) * 0.8;
    return mean + v * width + Math.max(0, i / n - 0.45) * rise;
  });
}

const models = [
  [
    'JPCP',
    'Job power, per node',
    12,
    { Production: 12, Canary: 13 },
    'warn',
    ['Drift z 4.18, above 3.0'],
    4.18,
    'current',
    12 * DAY,
  ],
  [
    'RuntimeRegressor',
    'Job run time, seconds',
    23,
    { Production: 23, Canary: 24 },
    'warn',
    ['Drift z 2.41, above 2.0'],
    2.41,
    'current',
    3 * DAY,
  ],
  [
    'MACK',
    'Memory class of a job',
    7,
    { Production: 7, Staging: 8 },
    'warn',
    ['The repository has newer commits'],
    0.92,
    'stale',
    19 * DAY,
  ],
  ['MCBound', 'Memory- or compute-bound', 9, { Production: 9 }, 'ok', [], 0.41, 'current', 3 * HOUR],
  ['RuntimeClass', 'Run-time class, 5 bins', 14, { Production: 14, Staging: 15 }, 'ok', [], 0.68, 'current', 2 * DAY],
  ['QueueWait', 'Wait until start', 3, { Production: 3 }, 'ok', [], 0.22, 'current', 31 * MIN],
  ['NodeThermal', 'Inlet temperature, 15 min', 5, { Production: 5 }, 'ok', [], 1.12, 'current', 6 * DAY],
  [
    'JPCP-gpu',
    'Job power, GPU nodes',
    2,
    { Production: 2 },
    'unknown',
    ['Serving gave no answer'],
    null,
    'current',
    11 * DAY,
  ],
  [
    'LinkFlap',
    'Fabric link failure, 24 h',
    1,
    { Staging: 1 },
    'unknown',
    ['No version under Production'],
    null,
    'unknown',
    40 * DAY,
  ],
];

/** What a registry says of all its rows. */
export const registryOf = (rows) => {
  const severities = { critical: 0, warn: 0, unknown: 0, ok: 0 };
  for (const { severity } of rows) severities[severity]++;
  const served = rows.filter(({ aliases }) => aliases.Production).length;
  return { count: rows.length, rows, matching: rows.length, served, severities, next_cursor: null };
};
const registry = () => ({
  registry: registryOf(
    models.map(([name, description, version, aliases, health, healthReasons, zScore, freshnessStatus, age], i) => ({
      name,
      trackerName: name.toUpperCase(),
      version,
      stage: aliases.Production ? 'Production' : 'Staging',
      health,
      severity: health === 'warn' && zScore >= 3 ? 'critical' : health,
      freshness: at(age),
      governed: i !== 5,
      aliases,
      freshnessStatus,
      healthReasons,
      served: aliases.Production ? health !== 'unknown' : undefined,
      driftStatus: zScore === null ? 'NO_BASELINE' : zScore > 3 ? 'CRITICAL' : zScore > 2 ? 'WARNING' : 'OK',
      zScore,
      trend: zScore === null ? [] : wander(i + 1, 24, 100, 6, zScore > 2 ? 40 : 0),
      description,
    })),
  ),
  _partial: ['freshness'],
  _as_of: at(4000),
  _sources: {
    tracker: { state: 'measured', status: 'ok', ms: 12 },
    freshness: { state: 'failed', status: 'timeout', ms: 2000, error: 'no answer in time' },
  },
});

const metricsOf = (v) => ({
  mae_log: 0.78 - v * 0.0015,
  rmse: 612 - v * 2.2,
  p90_error: 1400 + (v === 24 ? 188 : v * 4),
  r2: 0.7 + v * 0.003,
});
const versions = (name, top, aliases) =>
  Array.from({ length: Math.min(top, 24) }, (_, i) => top + (aliases.Canary ? 1 : 0) - i)
    .filter((v) => v > 0)
    .map((version, i) => ({
      version,
      aliases: Object.entries(aliases)
        .filter(([, v]) => v === version)
        .map(([a]) => a),
      runId: `019ab3d8${String(version).padStart(24, '0')}`,
      createdAt: at(i * 5 * DAY + 8 * HOUR),
      metrics: metricsOf(version),
      params: {
        trees: version > 22 ? '400' : '300',
        max_depth: version > 22 ? '7' : '6',
        learning_rate: '0.05',
        dataset: 'jobs-1993-q4',
      },
      tags: {
        commit_sha: '2d90b7aa11f04bb0a2f7e5c1f1b2c3d4e5f60718',
        data_origin: name === 'JPCP' ? 'generated' : 'measured',
        dataset_version: '9c1d00aa55ffe07a',
        training_rows: '10943',
        gpu_hours: '0.46',
        cost_usd: '11.70',
      },
    }));

const gate = (name) => ({
  model: name,
  trackerName: name.toUpperCase(),
  version: 24,
  policy: { allow: false, reasons: ['p90_error 1,588 is above 1,550', 'nobody approved version 24'] },
  eval: {
    pass: false,
    state: 'failed',
    metrics: {
      mae_log: { value: 0.742, baseline: 0.761, threshold: 0.8, passed: true },
      p90_error: { value: 1588, baseline: 1512, threshold: 1550, passed: false },
    },
  },
  approval: { required: true, state: 'pending' },
  allowed: false,
  checks: [
    { name: 'policy_enabled', pass: true, detail: 'policy RuntimeRegressor: rmse lte 620' },
    { name: 'metric', pass: true, detail: 'rmse 561.0 lte 620' },
    { name: 'p90_error', pass: false, detail: '1588 is above 1550: 38 over' },
    { name: 'eval', pass: true, detail: 'suite holdout-2026-11 passed 8 h ago' },
    { name: 'approval', pass: false, detail: 'nobody has been asked yet' },
  ],
});

const aliasHistory = (name) =>
  [
    [23, 21, 5 * DAY, null, 'idp-a:1001', 'promotion'],
    [21, 22, 20 * DAY, 5 * DAY, 'idp-a:1002', 'rollback'],
    [22, 21, 22 * DAY, 20 * DAY, 'system:gate', 'promotion'],
    [21, 20, 38 * DAY, 22 * DAY, 'system:gate', 'promotion'],
    [20, null, 52 * DAY, 38 * DAY, 'system:seed', 'ladder'],
  ].map(([version, previous, from, to, actor, via]) => ({
    model: name,
    alias: 'Production',
    version,
    previous,
    from: at(from),
    to: to === null ? null : at(to),
    actor,
    via,
  }));

const model = (name) => {
  const row = models.find(([n]) => n.toLowerCase() === name.toLowerCase());
  if (!row) return undefined;
  const [id, description, top, aliases, , , zScore] = row;
  return {
    detail: {
      name: id,
      trackerName: id.toUpperCase(),
      description,
      cost: { runs: 4, gpu_hours: 8.213, cost_usd: 212.75, synthetic_cost_usd: 0 },
      drift: {
        samples: 5911,
        mean_prediction: 5120.3342,
        latest: at(40_000),
        zScore,
        status: zScore > 3 ? 'CRITICAL' : zScore > 2 ? 'WARNING' : 'OK',
        overall: zScore > 3 ? 'CRITICAL' : zScore > 2 ? 'WARNING' : 'OK',
        baselineMean: 4400.1,
        measures: [
          { name: 'psi', value: 0.14, status: 'WARNING' },
          { name: 'ks', value: 0.004, status: 'WARNING' },
          { name: 'wasserstein', value: 0.31, status: 'OK' },
        ],
      },
      traffic: {
        configured: true,
        rules: aliases.Canary ? { Production: 95, Canary: 5 } : { Production: 100 },
        updated_at: at(8 * HOUR),
      },
      promotion: gate(id),
      versions: versions(id, top, aliases),
      aliasHistory: aliasHistory(id).map(({ previous, model: _m, ...move }) => ({
        ...move,
        previousVersion: previous,
      })),
    },
    _as_of: at(3000),
  };
};

const series = (name, metric, from, to) => {
  const n = 168;
  const start = new Date(from).getTime();
  const step = (new Date(to).getTime() - start) / n;
  const index = models.findIndex(([m]) => m.toLowerCase() === name.toLowerCase()) + 1;
  const z = models[index - 1]?.[6] ?? 0.6;
  const shapes = {
    z_score: [
      wander(index, n, 0.6, 0.25, 0).map((v, i) => Math.max(0, v + Math.max(0, i / n - 0.5) * 2 * (z - 0.6))),
      'z',
      { warning: 2, critical: 3, baseline: 1 },
    ],
    prediction_mean: [wander(index, n, 4400, 160, 900), 's', { baseline: 4400.1 }],
    requests: [
      Array.from({ length: n }, (_, i) =>
        Math.max(0, 24 * (6 / index) + 14 * Math.cos((i / n) * 18) + (random(i + index)() - 0.5) * 6),
      ),
      'req/s',
      {},
    ],
    latency_p95: [wander(index, n, 6 + index * 0.2, 0.8, 0), 'ms', {}],
    cost_usd: [[38, 52, 41, 47, 73], 'USD', {}],
  };
  const [values, unit, thresholds] = shapes[metric];
  if (metric === 'cost_usd')
    return { metric, unit, thresholds, points: values.map((v, i) => [now - (4 - i) * 7 * DAY, v]), _as_of: at(2000) };
  values[n - 1] = metric === 'z_score' ? z : values[n - 1];
  return {
    metric,
    unit,
    thresholds,
    points: values.map((v, i) => [
      Math.round(start + i * step),
      i > 66 && i < 74 && metric !== 'requests' ? null : Number(v.toFixed(4)),
    ]),
    _as_of: at(2000),
  };
};

const approval = (n, over) => ({
  id: uuid(n),
  kind: 'retrain',
  origin: 'modelrepo',
  model_id: 'MACK',
  dataset_name: 'mack-2026',
  status: 'pending',
  commit_sha: '7d33e0b19f8a4c2e11223344556677889900aabb',
  commit_msg: 'features: two new counters',
  changed_files: ['models/memory/MACK/model.yaml', 'models/memory/MACK/features.yaml'],
  tenant: 'hpc-centre',
  requested_by: 'forge:push',
  requesters: over.requested_by ? [over.requested_by] : ['forge:push', 'idp-a:1003'],
  person_unknown: false,
  first_approver: null,
  resolved_by: null,
  requested_at: at(4 * HOUR),
  resolved_at: null,
  prefect_run_id: null,
  reject_reason: null,
  promotion_id: null,
  expires_at: at(-20 * HOUR),
  updated_at: at(4 * HOUR),
  updated_by: 'forge:push',
  ...over,
});
const approvals = [
  approval(1, {
    kind: 'promotion',
    origin: 'promotion',
    model_id: 'JPCP',
    requested_by: 'idp-a:1002',
    requested_at: at(38 * MIN),
    promotion_id: uuid(71),
    expires_at: at(-23 * HOUR),
    commit_msg: 'v13 to Production',
    changed_files: [],
  }),
  approval(2, {
    origin: 'drift',
    model_id: 'RuntimeRegressor',
    requested_by: 'system:drift',
    requested_at: at(58 * MIN),
    dataset_name: 'jobs-1993-q4',
    commit_sha: '4f2a9c1e77aa0b1c2d3e4f5a6b7c8d9e0f1a2b3c',
    commit_msg: 'more trees',
    expires_at: at(-23 * HOUR),
    changed_files: [
      'models/performance_prediction/RuntimeRegressor/model.yaml',
      'models/performance_prediction/RuntimeRegressor/features.yaml',
      'models/performance_prediction/RuntimeRegressor/README.md',
    ],
  }),
  approval(3, {}),
  approval(4, {
    origin: 'ci',
    model_id: 'LinkFlap',
    requested_by: 'local:admin',
    requested_at: at(5.2 * HOUR),
    commit_msg: 'first training',
  }),
  approval(5, {
    status: 'approved',
    model_id: 'MCBound',
    resolved_by: 'idp-a:1001',
    resolved_at: at(18 * MIN),
    prefect_run_id: uuid(81),
  }),
  approval(6, {
    status: 'rejected',
    model_id: 'NodeThermal',
    resolved_by: 'idp-a:1003',
    resolved_at: at(3 * HOUR),
    reject_reason: 'wrong sensor calibration',
  }),
  approval(7, {
    status: 'expired',
    model_id: 'PowerCap',
    resolved_at: at(2 * DAY),
    expires_at: at(2 * DAY),
    requested_at: at(3 * DAY),
  }),
];
const patch = `@@ -12,6 +12,7 @@ training:
   algorithm: gradient_boosted_trees
-  trees: 300
+  trees: 400
   learning_rate: 0.05
-  max_depth: 6
+  max_depth: 7
+  early_stopping_rounds: 25
   split: by_time
`;

const run = (n, model_id, state_type, start, end, over = {}) => ({
  flow_run_id: uuid(n),
  model_id,
  dataset_name: 'jobs-1993-q4',
  origin: 'approval',
  state_type,
  commit_sha: '81c0d7aa11f04bb0a2f7e5c1f1b2c3d4e5f60718',
  approval_id: null,
  model_version: null,
  started_at: start === null ? null : at(start),
  ended_at: end === null ? null : at(end),
  ...over,
});
const runs = [
  run(81, 'MCBound', 'RUNNING', 18 * MIN, null, { approval_id: uuid(5) }),
  run(82, 'RuntimeClass', 'RUNNING', 48 * MIN, null),
  run(83, 'QueueWait', 'PENDING', null, null, { origin: 'manual' }),
  run(84, 'JPCP', 'COMPLETED', 140 * MIN, 90 * MIN, { model_version: '13' }),
  run(85, 'MACK', 'FAILED', 200 * MIN, 160 * MIN, { model_version: '8' }),
  run(86, 'QueueWait', 'COMPLETED', 120 * MIN, 70 * MIN, { model_version: '3', origin: 'manual' }),
  run(87, 'MCBound', 'COMPLETED', 290 * MIN, 230 * MIN, { model_version: '9' }),
  run(88, 'RuntimeRegressor', 'CRASHED', 26 * HOUR, 25.5 * HOUR, { origin: 'drift' }),
];

const keyMetrics = {
  MCBound: ['accuracy', 'higher', 0.913],
  RuntimeClass: ['accuracy', 'higher', 0.742],
  QueueWait: ['rmse', 'lower', 118.2],
  JPCP: ['rmse', 'lower', 21.4],
  MACK: ['f1_macro', 'higher', 0.641],
};
const inProduction = { MCBound: '9', RuntimeClass: '14', QueueWait: '3', JPCP: '12' };
const unmeasured = (reason) => ({ state: 'not_measured', reason });
/** A run as the dashboard composes it; its metric is the model's in Production, moved by so much. */
const runRow = (r, moved, over = {}) => {
  const [name, better, from] = keyMetrics[r.model_id] ?? [];
  const version = inProduction[r.model_id];
  const noVersion = r.ended_at ? 'the run produced no version' : 'the run has not ended';
  const metric = !name
    ? unmeasured('no promotion policy names the model’s key metric')
    : r.model_version
      ? { state: 'measured', name, better, value: from + moved }
      : { ...unmeasured(noVersion), name, better };
  const verdict = moved === 0 ? 'equal' : moved < 0 === (better === 'lower') ? 'better' : 'worse';
  return {
    ...r,
    cause: { manual: 'manual', drift: 'drift', approval: 'change' }[r.origin],
    is_dummy: false,
    is_generated: r.model_version ? false : undefined,
    requester: { manual: 'idp-a:1002', drift: 'system:drift', approval: 'ci' }[r.origin],
    approved_by: r.approval_id ? 'idp-a:1001' : undefined,
    tracker_run_id: r.started_at ? `${r.flow_run_id.replaceAll('-', '')}` : undefined,
    dispatched_at: r.started_at ?? at(2 * MIN),
    duration_s: r.ended_at ? (new Date(r.ended_at) - new Date(r.started_at)) / 1000 : undefined,
    metric,
    change:
      metric.state !== 'measured'
        ? unmeasured(metric.reason)
        : !version
          ? unmeasured('the model has no version in Production')
          : version === r.model_version
            ? { ...unmeasured('this is the version in Production'), version }
            : { state: 'measured', version, from, difference: moved, verdict },
    cost: r.model_version
      ? { state: 'measured', usd: 11.7, gpu_hours: 0.9, synthetic: false }
      : unmeasured(`${noVersion}, and cost is recorded by version`),
    ...over,
  };
};
const runRows = [
  runRow(runs[2], 0),
  runRow(runs[0], 0),
  runRow(runs[1], 0),
  runRow(runs[5], 0),
  runRow(runs[3], -0.62),
  runRow(runs[4], -0.029, { reason: 'macro F1 0.612, needs 0.640' }),
  runRow(runs[6], 0),
  runRow(runs[7], 0, { reason: 'The worker gave no sign of life for 10 min' }),
  runRow(run(89, 'JPCP', 'COMPLETED', 30 * HOUR, 29.4 * HOUR, { model_version: '11', origin: 'manual' }), 1.9, {
    cost: { state: 'measured', usd: 51.85, gpu_hours: 20.74, synthetic: true },
  }),
  runRow(run(90, 'QueueWait', 'COMPLETED', 50 * HOUR, 49.9 * HOUR, { model_version: '2', origin: 'manual' }), 4.1, {
    is_dummy: true,
    cause: 'dummy',
    change: { ...unmeasured('one of the two was a dummy run, on generated rows'), version: '3' },
    cost: unmeasured('no cost was recorded for version 2'),
  }),
];
const record = (r) =>
  r.tracker_run_id && r.model_version
    ? {
        state: 'measured',
        experiment_id: '3',
        params: {
          model_name: r.model_id,
          dataset: r.dataset_name,
          estimator: 'gbt',
          trees: r.model_version === '13' ? '400' : '300',
          seed: '7',
        },
        metrics: { [r.metric.name ?? 'rmse']: r.metric.value ?? 1, baseline_rmse: 88.6, mae: 14.2 },
      }
    : unmeasured('the run has recorded nothing at the tracker');

const promotion = (n, model_, state, ago) => ({
  id: uuid(n),
  model: model_,
  version: '13',
  from: 'Staging',
  to: 'Production',
  state,
  tenant: 'hpc-centre',
  origin: 'request',
  requested_by: 'idp-a:1002',
  requested_at: at(ago),
  decided_by: null,
  decided_at: state === 'pending' ? null : at(ago - MIN),
  reason: null,
  previous_version: '12',
  approval_id: uuid(1),
  flow_run_id: null,
  conditions: [],
  expires_at: null,
  updated_at: at(ago),
  updated_by: 'idp-a:1002',
});
const notices = [
  { kind: 'approval', title: 'ann requests the training of JPCP', path: '/approvals', author: 'idp-a:ann', ago: 4 },
  {
    kind: 'mention',
    title: 'bob mentions admin in a comment on model MACK',
    path: '/models/MACK?tab=discussion',
    author: 'idp-a:bob',
    ago: 9,
  },
  { kind: 'alert', title: 'JPCP: predictions have drifted', path: '/alerts', outcome: 'resolved', ago: 90 },
].map(({ ago, ...notice }, n) => ({
  id: `018f3a00-0000-7000-8000-0000000007${n}0`,
  at: at(ago * MIN),
  unread: !notice.outcome,
  ...notice,
}));
const channels = [
  {
    id: '018f3a00-0000-7000-8000-000000000801',
    name: 'On-call chat',
    kind: 'slack',
    host: 'chat.example.org',
    events: ['approval.requested', 'alert'],
    enabled: true,
    created_by: 'local:admin',
    created_at: at(9 * HOUR),
    updated_at: at(9 * HOUR),
    waiting: 2,
    abandoned: 0,
    last_success_at: at(60 * MIN),
    last_error_at: at(2 * MIN),
    last_error: 'the receiver answered 503 Service Unavailable',
  },
];

const promotions = [
  promotion(71, 'JPCP', 'pending', 38 * MIN),
  promotion(72, 'QueueWait', 'promoted', 31 * MIN),
  promotion(73, 'MACK', 'failed', 2 * HOUR),
  promotion(74, 'MCBound', 'promoted', 5 * HOUR),
];

const alerts = [
  {
    id: 'drift:JPCP:Production',
    source: 'drift',
    severity: 'critical',
    state: 'firing',
    title: 'JPCP: predictions have drifted, z 4.18 is above 3.0',
    labels: { model: 'JPCP', alias: 'Production', z: '4.18' },
    since: at(220 * MIN),
  },
  {
    id: 'eval:MACK:8',
    source: 'eval',
    severity: 'error',
    state: 'firing',
    title: 'MACK: macro F1 0.612 is below 0.640',
    labels: { model: 'MACK', version: '8', suite: 'holdout-2026-11' },
    since: at(125 * MIN),
  },
  {
    id: 'drift:RuntimeRegressor:Production',
    source: 'drift',
    severity: 'warn',
    state: 'firing',
    title: 'RuntimeRegressor: predictions are drifting, z 2.41',
    labels: { model: 'RuntimeRegressor', alias: 'Production', z: '2.41' },
    since: at(58 * MIN),
  },
  {
    id: 'budget:power:2026-11',
    source: 'budget',
    severity: 'warn',
    state: 'acknowledged',
    title: 'Budget of project power is 94 % used',
    labels: { project: 'power', period: '2026-11' },
    since: at(6 * HOUR),
    acked_by: 'idp-a:1002',
    acked_at: at(5 * HOUR),
  },
];
const resolved = [
  {
    id: 'drift:QueueWait:Production',
    source: 'drift',
    severity: 'critical',
    state: 'resolved',
    title: 'QueueWait: predictions have drifted',
    labels: { model: 'QueueWait' },
    since: at(20 * HOUR),
    resolved_at: at(14 * HOUR),
    acked_by: 'local:admin',
    acked_at: at(18 * HOUR),
  },
];

const drift = models.map(([name, , version, , , , z], i) => ({
  model: name,
  alias: 'Production',
  version: String(version),
  status: z === null ? 'NO_BASELINE' : z >= 3 ? 'CRITICAL' : z >= 2 ? 'WARNING' : 'OK',
  overall: z === null ? 'NO_BASELINE' : z >= 3 ? 'CRITICAL' : z >= 2 ? 'WARNING' : 'OK',
  decided_by: z >= 2 ? 'z_score' : undefined,
  z_score: z,
  z_se: z === null ? null : z * 9,
  live_mean: 4400 + i * 31,
  live_std: 210.4,
  baseline_mean: z === null ? null : 4400,
  baseline_std: z === null ? null : 198.2,
  n_snapshots: z === null ? 6 : 5911 - i * 400,
  n_baseline: z === null ? 0 : 500,
  measures:
    z === null
      ? {}
      : {
          z_score: { status: z >= 3 ? 'CRITICAL' : z >= 2 ? 'WARNING' : 'OK', value: z },
          psi: { status: 'OK', value: 0.04 + z / 20 },
          ks: { status: 'OK', value: 0.03, p_value: 0.31 },
          wasserstein: { status: 'OK', value: z / 6 },
        },
  reason: z === null ? 'no baseline was set' : undefined,
  recent: z === null ? [] : wander(i + 3, 24, 4400, 120, z > 2 ? 900 : 0),
  baseline_set_at: at(9 * DAY),
}));

const ledger = [
  ['model.promote', 'QueueWait v3', 'idp-a:1001', 31 * MIN],
  ['approval.approve', 'MCBound', 'idp-a:1001', 18 * MIN],
  ['approval.reject', 'NodeThermal', 'idp-a:1003', 3 * HOUR],
  ['drift.baseline_set', 'NodeThermal Production', 'local:admin', 5 * HOUR],
  ['auth.login', 'idp-a:1002', 'idp-a:1002', 6 * HOUR],
].map(([action, target, actor, ago], i) => ({
  seq: 48_210 - i,
  hash: `b41f${i}0aa90ce`,
  prevHash: `aa0${i}ff`,
  ts: at(ago),
  actor,
  action,
  target,
  outcome: i === 2 ? 'denied' : 'ok',
}));

const auto = [
  {
    model: 'RuntimeRegressor',
    enabled: true,
    dataset_name: null,
    min_z: 2,
    cooldown_seconds: 3600,
    gate: 'approval',
    gate_forced: false,
    kind: 'prediction',
    last_triggered_at: at(58 * MIN),
    last_outcome: 'requested',
    updated_at: at(9 * DAY),
    updated_by: 'idp-a:1001',
  },
  {
    model: 'JPCP',
    enabled: false,
    dataset_name: null,
    min_z: 3,
    cooldown_seconds: 3600,
    gate: 'approval',
    gate_forced: true,
    kind: 'any',
    last_triggered_at: null,
    last_outcome: null,
    updated_at: at(9 * DAY),
    updated_by: 'idp-a:1001',
  },
];

let comments = [
  {
    id: uuid(401),
    author: 'idp-a:1002',
    author_name: 'Ada',
    body: 'p90 got worse with depth 7',
    bodyHtml: '<p>p90 got worse with <code>max_depth: 7</code>. @idp-a:1001, hold v24?</p>',
    mentions: ['idp-a:1001'],
    created_at: at(7 * HOUR),
  },
  {
    id: uuid(402),
    author: 'local:admin',
    body: 'Held.',
    bodyHtml: '<p>Held until the <strong>p90</strong> check passes.</p>',
    mentions: [],
    created_at: at(6 * HOUR),
  },
];

const me = (role) => ({
  sub: role === 'admin' ? 'local:admin' : 'local:viewer',
  role,
  tenant: 'hpc-centre',
  capabilities:
    role === 'admin'
      ? [
          'alert.ack',
          'approval.decide',
          'assistant.decide',
          'audit.read',
          'comment.write',
          'config.write',
          'copilot.ask',
          'drift.manage',
          'flag.write',
          'model.promote',
          'proxy.write',
          'retrain.trigger',
          'search',
          'secret.write',
          'snapshot.create',
          'traffic.manage',
          'view',
        ]
      : ['alert.ack', 'comment.write', 'copilot.ask', 'search', 'snapshot.create', 'view'],
  auth_method: 'password',
  auth_time: at(HOUR),
  expires_at: at(-10 * HOUR),
  break_glass: false,
});

/** Returns an answer for a request, or undefined for a path that has none. */
export function answer(method, path, query, body, role) {
  const cp = path.startsWith('/api/proxy/control_plane') ? path.slice('/api/proxy/control_plane'.length) : '';
  const sv = path.startsWith('/api/proxy/serving') ? path.slice('/api/proxy/serving'.length) : '';
  const m = (pattern, text = path) => pattern.exec(text)?.slice(1).map(decodeURIComponent);
  let p;
  if (path === '/api/auth/me') return me(role);
  if (path === '/api/v1/overview')
    return {
      meta: { service: 'dashboard-bff', api: 'v1' },
      traffic: { models_with_rules: 2 },
      drift: { models_tracked: 8 },
      audit: { total_events: 48_210 },
      _as_of: at(1500),
    };
  if (path === '/api/health')
    return {
      status: 'degraded',
      checked_at: at(2000),
      unmeasured: ['metrics_store', 'dashboards', 'scheduler', 'bus_sim'],
      services: {
        tracker: { status: 'ok', url: 'http://127.0.0.1:15000' },
        orchestrator: { status: 'degraded', url: 'http://127.0.0.1:14200', note: 'answers 503' },
        serving: { status: 'ok', url: 'http://127.0.0.1:18001' },
        metrics_store: { status: 'unknown', note: 'not configured' },
        dashboards: { status: 'unknown', note: 'not configured' },
        scheduler: { status: 'unknown' },
        bus: { status: 'ok' },
        bus_sim: { status: 'unknown' },
      },
    };
  if (path === '/api/v1/mlops/registry') {
    const view = registry();
    const q = (query.get('q') ?? '').toLowerCase();
    const rows = view.registry.rows.filter((row) => row.name.toLowerCase().includes(q));
    return { ...view, registry: { ...view.registry, rows, matching: rows.length } };
  }
  if ((p = m(/^\/api\/v1\/mlops\/model\/([^/]+)$/))) return model(p[0]);
  if ((p = m(/^\/api\/v1\/mlops\/model\/([^/]+)\/series$/)))
    return series(p[0], query.get('metric'), query.get('from'), query.get('to'));
  if ((p = m(/^\/api\/v1\/mlops\/promotion\/([^/]+)$/))) return { promotion: gate(p[0]), _as_of: at(1000) };
  if (path === '/api/v1/flags')
    return {
      flags: {
        mlopsConsole: true,
        facilityConsole: true,
        llmopsConsole: true,
        finopsConsole: true,
        commandPalette: true,
        copilotDrawer: true,
        toolProxy: true,
        incidentTimeline: false,
      },
    };
  if (path === '/api/v1/inbox') return { unread: notices.filter((n) => n.unread).length, items: notices };
  if ((p = m(/^\/api\/v1\/inbox\/([^/]+)\/read$/))) {
    for (const n of notices) if (n.id === p[0]) n.unread = false;
    return {};
  }
  if (path === '/api/v1/inbox/read-all') {
    for (const n of notices) n.unread = false;
    return {};
  }
  if (path === '/api/v1/notifications/channels')
    return { channels, mail_configured: false, allowed_hosts: ['chat.example.org:443'] };
  if (m(/^\/api\/v1\/notifications\/channels\/([^/]+)\/test$/)) return { delivered: true };
  if (path === '/api/v1/alerts') {
    const state = query.get('state');
    const list = state === 'resolved' ? resolved : state === 'all' ? [...alerts, ...resolved] : alerts;
    return {
      inbox: {
        count: list.length,
        counts: { critical: 1, error: 1, warn: 2 },
        unacknowledged: alerts.filter((a) => a.state === 'firing').length,
        alerts: list,
      },
      _as_of: at(900),
    };
  }
  if ((p = m(/^\/api\/v1\/alerts\/([^/]+)\/ack$/))) {
    const alert = alerts.find((a) => a.id === p[0]);
    if (alert)
      Object.assign(alert, { state: 'acknowledged', acked_by: 'local:admin', acked_at: new Date().toISOString() });
    return alert && { acked: true, audited: true, acked_by: alert.acked_by, acked_at: alert.acked_at };
  }
  if (path === '/api/v1/governance/overview')
    return {
      posture: {
        controls: [
          {
            control: 'MAP-1',
            title: 'Purpose is written down',
            function: 'MAP',
            status: 'satisfied',
            evidence: ['model cards'],
          },
        ],
        satisfied: 11,
        total: 14,
        statement: '11 of 14 controls evidenced. Evidence coverage, not certification.',
      },
      audit: {
        count: 48_210,
        headDigest: 'b41f',
        verified: true,
        verifiedAt: at(4 * HOUR),
        checked: 48_210,
        entries: ledger,
      },
      _as_of: at(800),
    };
  if (path === '/api/v1/facility/overview')
    return {
      facility: {
        nodesAllocated: 12,
        gpusAllocated: 24,
        jobsRunning: 3,
        queueDepth: 5,
        clusters: ['hpc'],
        partitions: [{ name: 'gpu', running: 3, queued: 5, gpusAllocated: 24 }],
      },
      _as_of: at(900),
    };
  if (path === '/api/v1/facility/queue')
    return {
      queue: {
        count: 1,
        jobs: [
          {
            id: '4711',
            cluster: 'hpc',
            model: 'JPCP',
            partition: 'gpu',
            state: 'PENDING',
            nodes: 2,
            gpus: 8,
            waitSec: 600,
            submitTime: at(10 * MIN),
          },
        ],
      },
      _as_of: at(900),
    };
  const costSummary = {
    rows: [{ key: 'JPCP', runs: 4, gpuHours: 8.2, cpuHours: 3, costUsd: 212.75 }],
    total_cost_usd: 212.75,
    total_gpu_hours: 8.2,
  };
  const carbonSummary = {
    byModel: [{ model: 'JPCP', kwh: 4.1, co2e_g: 1900 }],
    totals: { kwh: 4.1, co2e_g: 1900 },
    co2e_kg: 1.9,
    uncertainty: 0.3,
    methodology: 'Measured power times grid intensity.',
  };
  if (path === '/api/v1/finops/overview')
    return {
      cost: costSummary,
      budget: { consumed_cost_usd: 94.5 },
      carbon: carbonSummary,
      unitEconomics: { costPerTrainingRun: 53.19 },
      _as_of: at(900),
    };
  if (cp === '/costs/summary') return { cost: costSummary };
  if (cp === '/carbon') return carbonSummary;
  if (cp === '/budgets')
    return {
      items: [
        {
          project: 'power',
          period: 'monthly',
          costBudget: 100,
          consumedCostUsd: 94.5,
          costRatio: 0.945,
          gpuHoursBudget: null,
          consumedGpuHours: 8.2,
          gpuHoursRatio: null,
          overBudget: false,
        },
      ],
      next_cursor: null,
    };
  if (path === '/api/v1/llmops/overview')
    return {
      endpoints: {
        count: 1,
        rows: [
          {
            model: 'helper-7b',
            hostedModelId: 'helper-7b-q8',
            engine: 'vllm',
            maxModelLen: 8192,
            tensorParallel: 2,
            dtype: 'bf16',
            enabled: true,
          },
        ],
      },
      evals: {
        models: [
          {
            model: 'helper-7b',
            suite: 'tasks',
            status: 'passed',
            passRate: 0.93,
            metrics: [{ metric: 'exact', value: 0.81, baseline: 0.78, passed: true }],
          },
        ],
      },
      _as_of: at(900),
    };
  if (cp === '/evals')
    return {
      items: [
        {
          id: uuid(801),
          model: 'helper-7b',
          version: '1',
          suite: 'tasks',
          status: 'passed',
          passRate: 0.93,
          updated_at: at(HOUR),
          updated_by: 'ci',
        },
      ],
      next_cursor: null,
    };
  if (cp === '/governance/changes') return { items: [], next_cursor: null };
  if (cp === '/audit/checkpoints')
    return {
      items: [{ seq: 48_200, hash: 'b41f', ts: at(HOUR), key_id: 'k1', signature: 's1' }],
      next_cursor: null,
    };
  if (cp === '/audit/keys') return { items: [{ key_id: 'k1', vouched: true }] };
  if (path === '/api/v1/selfobs/status')
    return {
      status: 'up',
      dependencies: [{ name: 'postgres', status: 'up', latencyMs: 1.2 }],
      metrics: {
        requests: 912,
        errors: 3,
        clientErrors: 7,
        rateLimitHits: 1,
        latencyMs: { p50: 4.1, p95: 22.4, count: 912 },
      },
      _as_of: at(900),
    };
  if (path === '/api/audit')
    return {
      items: [
        {
          id: uuid(901),
          seq: 901,
          at: at(MIN),
          actor: 'local:admin',
          action: 'model.promote',
          target: 'model:JPCP',
          source: 'control-plane',
          outcome: 'ok',
          details: {},
          hash: 'b41f00',
        },
      ],
      total: 48_210,
      next_cursor: null,
    };
  if ((p = m(/^\/api\/v1\/collab\/([^/]+)\/([^/]+)\/comments$/))) {
    if (method === 'GET') return { comments, next_cursor: null };
    const comment = {
      id: uuid(500 + comments.length),
      author: 'local:admin',
      body: body.body,
      bodyHtml: `<p>${String(body.body).replace(/[<&]/g, '')}</p>`,
      mentions: [],
      created_at: new Date().toISOString(),
    };
    comments = [...comments, comment];
    return comment;
  }
  if ((p = m(/^\/api\/v1\/collab\/[^/]+\/[^/]+\/activity$/))) return { activity: [] };
  if (path === '/api/v1/search')
    return {
      search: {
        query: query.get('q'),
        count: 1,
        results: [
          {
            kind: 'doc',
            id: 'docs/drift.md',
            label: 'Drift',
            url: '/documents?path=docs/drift.md',
            score: 80,
            source: 'docs',
          },
        ],
        groups: {},
      },
    };
  if (cp === '/approvals') return approvals.filter((a) => !query.get('status') || a.status === query.get('status'));
  if ((p = m(/^\/api\/v1\/approvals\/([^/]+)\/effect$/))) {
    const a = approvals.find((x) => x.id === p[0]);
    const run = a?.model_id === 'MACK';
    return (
      a && {
        approval_id: a.id,
        kind: a.kind,
        model_id: a.model_id,
        decidable: a.status === 'pending',
        action:
          a.kind === 'promotion' ? 'Approve and promote' : run ? 'Approve, train and promote' : 'Approve and train',
        sentences:
          a.kind === 'promotion'
            ? [
                'If the gate still passes, version 13 of JPCP is served under Production in place of version 12 at once.',
              ]
            : [
                `At once one training run of ${a.model_id} with data set ${a.dataset_name} starts.`,
                run
                  ? 'If the new version passes the gate, it is served under Production in place of version 7, without another question: this approval decides that too.'
                  : 'If the new version passes the gate, its promotion to Production waits for another approval.',
              ],
      }
    );
  }
  if ((p = m(/^\/approvals\/([^/]+)\/diff$/, cp))) {
    const a = approvals.find((x) => x.id === p[0]);
    return (
      a && {
        from_commit: '11aa22bb33cc44dd',
        to_commit: a.commit_sha,
        truncated: false,
        files: a.changed_files.map((path_, i) => ({
          path: path_,
          status: 'modified',
          additions: 3 - i,
          deletions: i === 0 ? 2 : 0,
          patch: i === 2 ? undefined : patch,
        })),
      }
    );
  }
  if ((p = m(/^\/approvals\/([^/]+)\/(approve|reject)$/, cp))) {
    const a = approvals.find((x) => x.id === p[0]);
    Object.assign(a, {
      status: p[1] === 'approve' ? 'approved' : 'rejected',
      resolved_by: 'local:admin',
      resolved_at: new Date().toISOString(),
    });
    return { flow_run_id: uuid(99), status_url: '', model_id: a.model_id, approval_id: a.id, status: a.status };
  }
  if ((p = m(/^\/approvals\/([^/]+)$/, cp))) return approvals.find((x) => x.id === p[0]);
  if (path === '/api/v1/runs') {
    const items = process.env.MANY_RUNS
      ? Array.from({ length: Number(process.env.MANY_RUNS) }, (_, i) => ({
          ...runRows[i % runRows.length],
          flow_run_id: `019ab3f7-7c1e-7000-8000-${String(i).padStart(12, '0')}`,
        }))
      : runRows;
    return { runs: { items, truncated: false }, _as_of: at(1200) };
  }
  if ((p = m(/^\/api\/v1\/runs\/([^/]+)$/, path))) {
    const r = runRows.find((x) => x.flow_run_id === p[0]);
    return r && { run: r, record: record(r), _as_of: at(1200) };
  }
  if (cp === '/runs')
    return { items: runs.filter((r) => !query.get('model') || r.model_id === query.get('model')), next_cursor: null };
  if ((p = m(/^\/retrain\/([^/]+)$/, cp))) {
    const r = runs.find((x) => x.flow_run_id === p[0]);
    return (
      r && {
        flow_run_id: r.flow_run_id,
        state_type: r.state_type,
        state_name: r.state_type,
        is_terminal: !!r.ended_at,
        model_id: r.model_id,
        dataset_name: r.dataset_name,
        commit_sha: r.commit_sha,
        model_version: r.model_version,
        tracker_run_id: '019ab3f7',
        stale: false,
      }
    );
  }
  if (cp === '/retrain') return { flow_run_id: uuid(98), deployment: 'train', status_url: '', parameters: {} };
  if (cp === '/promotions') return { items: promotions, next_cursor: null };
  if ((p = m(/^\/promotions\/([0-9a-f-]{36})$/, cp))) return promotions.find((x) => x.id === p[0]);
  if (cp === '/promotion-policies')
    return {
      items: [
        {
          model: 'RuntimeRegressor',
          metric: 'rmse',
          operator: 'lte',
          threshold: 620,
          from_alias: 'Staging',
          to_alias: 'Production',
          enabled: true,
          require_eval: true,
          approval_mode: 'each',
          updated_at: at(9 * DAY),
          updated_by: 'idp-a:1001',
        },
      ],
      next_cursor: null,
    };
  if (cp === '/alias-history') {
    const list = aliasHistory(query.get('model') ?? 'JPCP').map(({ version, previous, ...move }) => ({
      ...move,
      version: String(version),
      previous_version: previous && String(previous),
      promotion_id: null,
    }));
    const when = query.get('at');
    return { items: when ? list.filter((h) => h.from <= when && (!h.to || h.to > when)) : list, next_cursor: null };
  }
  if (cp === '/modelrepo/events')
    return [0, 1, 2, 3].map((i) => ({
      id: 600 + i,
      commit_sha: '7d33e0b19f8a4c2e11223344556677889900aabb',
      branch: 'main',
      pushed_by: 'ada',
      timestamp: at(i * 2 * HOUR + 60_000),
      source: 'webhook',
      delivery_id: null,
    }));
  if (cp === '/modelrepo/status')
    return {
      models: models.map(([n, , , , , , , f]) => ({
        model_id: n,
        status: f,
        latest_modelrepo_commit: '7d33e0b1',
        last_retrain_commit: null,
        stale_since: null,
        retrain_triggered_at: null,
        trained_from_commit: null,
        active_run: null,
        touched_by_last_push: false,
      })),
      last_event: { commit_sha: '7d33e0b1', timestamp: at(60_000), source: 'webhook' },
    };
  if (cp === '/models') return models.map(([n]) => ({ model_name: n, datasets: ['jobs-1993-q4', 'jobs-1994-q1'] }));
  if ((p = m(/^\/models\/([^/]+)\/meta$/, cp)))
    return {
      name: p[0],
      trackerName: p[0].toUpperCase(),
      task_type: 'regression',
      type: 'performance_prediction',
      estimator: 'gradient_boosted_trees',
      supported_datasets: ['jobs-1993-q4', 'jobs-1994-q1'],
      input_schema: null,
      output_schema: null,
      lifecycle: [],
      project: 'scheduling',
      bus_uuid: null,
      enabled: true,
    };
  if (cp === '/auto-retrain') return { items: auto, next_cursor: null };
  if ((p = m(/^\/auto-retrain\/([^/]+)$/, cp))) {
    let row = auto.find((a) => a.model === p[0]);
    if (!row) auto.push((row = { ...auto[1], model: p[0] }));
    return Object.assign(row, body);
  }
  if (cp === '/drift/trigger')
    return {
      results: auto.map((a) => ({
        model: a.model,
        z_score: 2.41,
        outcome: a.enabled ? 'already_pending' : 'below_threshold',
      })),
    };
  if (cp === '/costs')
    return {
      items: [0, 1, 2, 3].map((i) => ({
        id: uuid(700 + i),
        model: query.get('model'),
        version: String(23 - i),
        run_id: uuid(80 + i),
        scheduler: 'local',
        job_id: String(900 + i),
        project: 'scheduling',
        gpu_hours: 0.46 + i / 10,
        cpu_hours: 2,
        cost_usd: 11.7 + i * 3,
        kwh: 1.4,
        co2e_g: 510,
        synthetic: i === 3,
        recorded_at: at(i * 6 * DAY),
        updated_at: at(i * 6 * DAY),
        updated_by: 'idp-a:1001',
      })),
      next_cursor: null,
    };
  if (sv === '/drift/status') return drift.filter((d) => !query.get('model') || d.model === query.get('model'));
  if ((p = m(/^\/drift\/([^/]+)\/baseline$/, sv)))
    return { model: p[0], alias: 'Production', n: 500, mean: 4400, std: 200, set_at: new Date().toISOString() };
  if (sv.startsWith('/models'))
    return models.flatMap(([n, , , aliases]) =>
      Object.entries(aliases).map(([alias, v]) => ({
        model_name: n,
        model_version: String(v),
        run_id: uuid(80),
        status: 'ok',
        alias,
        flavor: 'onnx',
        digest: '51be00000000000000000000000083c4',
        verified: true,
        loaded_at: at(8 * HOUR),
        data_origin: n.startsWith('JPCP') ? 'generated' : 'measured',
        dummy: false,
        inputs: [],
        output: { kind: 'number', unit: 's' },
      })),
    );
  if (/^\/traffic-rules\//.test(sv))
    return {
      model: 'x',
      rules: body,
      applied: true,
      updated_at: new Date().toISOString(),
      updated_by: 'local:admin',
      warnings: [],
    };
  return undefined;
}
