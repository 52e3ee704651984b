// The assistant's frames, as its stream and the dashboard's relay send them.

import type { ServerEvent } from '../live/sse';

export type StepStatus = 'pending' | 'in_progress' | 'done' | 'skipped';

export interface PlanStep {
  description: string;
  status: StepStatus;
}

/** A change that waits for a decision, as the stream announces it; the action document has the difference. */
export interface Prompt {
  actionId: string;
  risk: string;
  command: string;
  alwaysConfirm: boolean;
  expiresAt: string;
  digest: string;
  /** The cluster it acts on; empty if the assistant has one cluster. */
  cluster: string;
  /** The objects it acts on, as listed in the prompt's text. */
  affected: string[];
}

export type Frame =
  | { kind: 'start'; session: string }
  | { kind: 'status'; phase: string; message: string }
  | { kind: 'plan'; steps: PlanStep[] }
  | { kind: 'call'; id: string; tool: string; message: string }
  | { kind: 'result'; id: string; tool: string; output: string; ok: boolean; truncated: boolean }
  | { kind: 'error'; code: string; message: string; fatal: boolean }
  | { kind: 'text'; content: string }
  | { kind: 'prompt'; prompt: Prompt }
  | { kind: 'stop'; prompt?: Prompt }
  | { kind: 'end' };

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const stepStates: readonly StepStatus[] = ['pending', 'in_progress', 'done', 'skipped'];

/** Reads one frame; undefined for what is damaged or of a kind that this page does not know. */
export function readFrame({ data }: Pick<ServerEvent, 'data'>): Frame | undefined {
  if (data === '[DONE]') return { kind: 'end' };
  let body: unknown;
  try {
    body = JSON.parse(data);
  } catch {
    return undefined;
  }
  if (!isObject(body)) return undefined;
  if (body.object === 'stream.start') return { kind: 'start', session: textOf(body.session_id) };
  if (isObject(body.ki_event)) return readEvent(body.ki_event);
  const choice: unknown = Array.isArray(body.choices) ? body.choices[0] : undefined;
  if (!isObject(choice)) return undefined;
  const prompt = readPrompt(choice);
  if (choice.finish_reason === 'stop') return { kind: 'stop', prompt };
  // The text of a prompt is for readers without buttons: the card shows the same.
  if (prompt) return { kind: 'prompt', prompt };
  const content = isObject(choice.delta) ? textOf(choice.delta.content) : '';
  return content ? { kind: 'text', content } : undefined;
}

function readEvent(event: Json): Frame | undefined {
  switch (event.type) {
    case 'status':
      return { kind: 'status', phase: textOf(event.phase), message: textOf(event.message) };
    case 'plan': {
      const steps = Array.isArray(event.steps) ? event.steps.filter(isObject) : [];
      return {
        kind: 'plan',
        steps: steps.map((step) => ({
          description: textOf(step.description),
          status: stepStates.find((state) => state === step.status) ?? 'pending',
        })),
      };
    }
    case 'tool_call':
      return { kind: 'call', id: textOf(event.call_id), tool: textOf(event.tool), message: textOf(event.message) };
    case 'tool_result':
      return {
        kind: 'result',
        id: textOf(event.call_id),
        tool: textOf(event.tool),
        output: textOf(event.output),
        ok: event.ok === true,
        truncated: event.truncated === true,
      };
    case 'error':
      return {
        kind: 'error',
        code: textOf(event.code),
        message: textOf(event.message),
        fatal: event.fatal === true,
      };
    default:
      return undefined;
  }
}

function readPrompt(choice: Json): Prompt | undefined {
  const actionId = textOf(choice.action_id);
  if (choice.hitl_required !== true || !actionId) return undefined;
  return {
    actionId,
    risk: textOf(choice.risk_level),
    command: textOf(choice.human_summary),
    alwaysConfirm: choice.always_confirm === true,
    expiresAt: textOf(choice.expires_at),
    digest: textOf(choice.digest),
    cluster: textOf(choice.cluster),
    affected: isObject(choice.delta) ? readAffected(textOf(choice.delta.content)) : [],
  };
}

/** Reads the list of affected objects, which only the prompt's words have. */
function readAffected(words: string): string[] {
  const list = /^Affected \(\d+\):\n((?:- .*(?:\n|$))+)/m.exec(words)?.[1] ?? '';
  return list
    .split('\n')
    .filter((line) => line.startsWith('- '))
    .map((line) => line.slice(2).trim());
}

/** Returns the number of the turn that a frame's id names: 3 of "3.12". */
export function turnOf(id: string | undefined): number | undefined {
  const number = /^(\d{1,9})\.\d{1,9}$/.exec(id ?? '')?.[1];
  return number === undefined ? undefined : Number(number);
}
