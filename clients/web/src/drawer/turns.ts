// A conversation as turns: a question and what came back. Frames are folded in one after the other, so that a
// live stream and a replay give the same page.

import type { Frame, PlanStep, Prompt } from './frames';

export interface ToolCall {
  id: string;
  tool: string;
  message: string;
  output?: string;
  ok?: boolean;
  truncated?: boolean;
  /** When the call was seen to begin and end; absent in a replay, where nothing takes its time. */
  began?: number;
  ended?: number;
}

export interface Failure {
  code: string;
  message: string;
}

export interface Turn {
  /** The assistant's number of it; unknown until the first frame with an id. */
  number?: number;
  question?: string;
  /** Set where this page asked automatically, after a decision. */
  automatic?: boolean;
  phase?: string;
  status?: string;
  plan: PlanStep[];
  calls: ToolCall[];
  answer: string;
  prompts: Prompt[];
  remarks: Failure[];
  failure?: Failure;
  running: boolean;
  began?: number;
  ended?: number;
}

export function newTurn(more: Partial<Turn> = {}): Turn {
  return { plan: [], calls: [], answer: '', prompts: [], remarks: [], running: true, ...more };
}

/** Returns the turn with a frame added. Without a time nothing is measured: a replay's frames come all at once. */
export function addFrame(turn: Turn, frame: Frame, at?: number): Turn {
  switch (frame.kind) {
    case 'status':
      return { ...turn, phase: frame.phase, status: frame.message };
    case 'plan':
      return { ...turn, plan: frame.steps };
    case 'call':
      return {
        ...turn,
        calls: [...turn.calls, { id: frame.id, tool: frame.tool, message: frame.message, began: at }],
      };
    case 'result':
      return { ...turn, calls: addResult(turn.calls, frame, at) };
    case 'error': {
      const failure = { code: frame.code, message: frame.message };
      return frame.fatal ? { ...turn, failure } : { ...turn, remarks: [...turn.remarks, failure] };
    }
    case 'text':
      return { ...turn, answer: turn.answer + frame.content };
    case 'prompt':
      return { ...turn, prompts: addPrompt(turn.prompts, frame.prompt) };
    case 'stop':
      // In a replay only the last turn is followed by an end.
      return {
        ...turn,
        prompts: frame.prompt ? addPrompt(turn.prompts, frame.prompt) : turn.prompts,
        running: false,
        ended: at,
      };
    case 'end':
      return { ...turn, running: false, ended: turn.ended ?? at };
    case 'start':
      return turn;
  }
}

function addResult(calls: readonly ToolCall[], frame: Extract<Frame, { kind: 'result' }>, at?: number): ToolCall[] {
  const { id, tool, output, ok, truncated } = frame;
  const known = calls.findLastIndex((call) => call.id === id && call.ok === undefined);
  if (known < 0) return [...calls, { id, tool, message: tool, output, ok, truncated, ended: at }];
  return calls.map((call, i) => (i === known ? { ...call, output, ok, truncated, ended: at } : call));
}

/** A prompt arrives twice: in the text with the affected objects, and at the end without. */
function addPrompt(prompts: readonly Prompt[], prompt: Prompt): Prompt[] {
  const known = prompts.findIndex((each) => each.actionId === prompt.actionId);
  if (known < 0) return [...prompts, prompt];
  return prompts.map((each, i) => (i === known ? { ...each, ...prompt, affected: each.affected } : each));
}

export interface Progress {
  done: number;
  all: number;
  /** What is being looked at. */
  current?: string;
}

/** Counts the checks: steps of the plan, or without one the calls. */
export function progressOf(turn: Turn): Progress {
  if (turn.plan.length > 0) {
    const done = turn.plan.filter((step) => step.status === 'done' || step.status === 'skipped').length;
    const current = turn.plan.find((step) => step.status === 'in_progress')?.description;
    return { done, all: turn.plan.length, current };
  }
  return {
    done: turn.calls.filter((call) => call.ok !== undefined).length,
    all: turn.calls.length,
    current: turn.calls.find((call) => call.ok === undefined)?.message,
  };
}

/** Cuts off what the dashboard adds to a question before it hands it on: the fenced view of the page. */
export function questionOf(message: string, fenceTitle: string): string {
  const fence = message.indexOf(`\n\n${fenceTitle}`);
  return (fence < 0 ? message : message.slice(0, fence)).trim();
}
