// What a service answers when it refuses or fails (RFC 9457), as an error.

export interface FieldFault {
  loc: string[];
  msg: string;
}

export interface ProblemBody {
  status?: number;
  title?: string;
  detail?: string;
  code?: string;
  request_id?: string;
  errors?: FieldFault[];
  acr_values?: string[];
  max_age?: number;
  provider?: string;
  login_url?: string;
}

/** A refused or failed request. `code` is stable; `detail` is for people. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly requestId?: string;
  readonly fields: FieldFault[];
  readonly retryAfter?: number;
  readonly body: ProblemBody;

  constructor(status: number, body: ProblemBody, more: { requestId?: string; retryAfter?: number } = {}) {
    super(body.detail || body.title || `HTTP ${status}`);
    this.name = 'Problem';
    this.status = status;
    this.code = body.code ?? (status === 0 ? 'unreachable' : `http_${status}`);
    this.title = body.title ?? '';
    this.requestId = body.request_id ?? more.requestId;
    this.fields = Array.isArray(body.errors) ? body.errors : [];
    this.retryAfter = more.retryAfter;
    this.body = body;
  }

  /** Nothing has happened yet: the act needs a fresh sign-in. */
  get needsStepUp(): boolean {
    return this.status === 401 && this.code === 'step_up_required';
  }

  /** The session is over or was never there. */
  get needsLogin(): boolean {
    return this.status === 401 && this.code !== 'step_up_required';
  }

  /** A second try could succeed without anyone mending anything. */
  get mayRecover(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Parses a failed response; a body that is not a problem document still yields a usable one. */
export async function readProblem(response: Response): Promise<Problem> {
  let body: ProblemBody = {};
  try {
    const type = response.headers.get('content-type') ?? '';
    if (type.includes('json')) body = (await response.json()) as ProblemBody;
    else body = { detail: (await response.text()).slice(0, 300).trim() };
  } catch {
    body = {};
  }
  const wait = Number(response.headers.get('retry-after'));
  return new Problem(response.status, body !== null && typeof body === 'object' ? body : {}, {
    requestId: response.headers.get('x-request-id') ?? undefined,
    retryAfter: Number.isFinite(wait) && wait > 0 ? wait : undefined,
  });
}
