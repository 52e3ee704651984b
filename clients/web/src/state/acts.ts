// Acts: writes that a person confirmed. An act is data, so that it survives the way to the identity
// provider and back when it needs a fresh sign-in.

import { useCallback, useState } from 'react';
import { sendJSON } from '../api/client';
import { Problem } from '../api/problem';
import { notify } from '../components/toast';
import type { Topic } from '../live/topics';
import { invalidateTopics } from './live';

export interface Act {
  /** Names act and object: "Move Production of JPCP from v12 to v13". */
  title: string;
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: unknown;
  /** The version that the person saw: a write over another one is refused. */
  ifMatch?: string;
  /** The members of body that hold secrets. They are never put aside: the person types them again. */
  secrets?: readonly string[];
  /** The button that does it. */
  confirm: string;
  /** The message once it is done. */
  done: string;
  /** The message instead where this member of the answer has this value: the act is not complete yet. */
  unfinished?: { member: string; equals: unknown; say: string };
  topics: readonly Topic[];
}

export interface StepUp {
  act: Act;
  /** From the refusal: what kind of sign-in is required. */
  acrValues: string[];
  maxAge: number;
  provider?: string;
  loginUrl?: string;
  /** Set on the way back: the person signed in again, or came back without. */
  returned?: 'met' | 'not_met';
}

const KEY = 'platform.pending_act';
/** A pending act is forgotten after this: who comes back later has forgotten it too. */
const LIFE = 10 * 60_000;

let current: StepUp | undefined;
const listeners = new Set<() => void>();

export function getStepUp(): StepUp | undefined {
  return current;
}

export function setStepUp(stepUp: StepUp | undefined): void {
  current = stepUp;
  for (const listener of listeners) listener();
}

export function subscribeToStepUp(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Puts the act aside for the way to the provider, without its secrets: scripts of any kind can read this storage. */
export function storePendingAct(stepUp: StepUp): void {
  const { secrets = [] } = stepUp.act;
  const kept = Object.entries((stepUp.act.body ?? {}) as Record<string, unknown>).filter(
    ([name]) => !secrets.includes(name),
  );
  const act = secrets.length > 0 ? { ...stepUp.act, body: Object.fromEntries(kept) } : stepUp.act;
  sessionStorage.setItem(KEY, JSON.stringify({ ...stepUp, act, at: Date.now() }));
}

/** Returns the secrets that the act lost on its way and that must be typed again. */
export function missingSecrets({ secrets = [], body }: Act): string[] {
  return secrets.filter((name) => !(name in ((body ?? {}) as Record<string, unknown>)));
}

/** Takes the act that was put aside, once. */
export function takePendingAct(): StepUp | undefined {
  const stored = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  if (!stored) return undefined;
  try {
    const { at, ...stepUp } = JSON.parse(stored) as StepUp & { at: number };
    return Date.now() - at < LIFE ? stepUp : undefined;
  } catch {
    return undefined;
  }
}

function stepUpOf(act: Act, problem: Problem): StepUp {
  const { acr_values, max_age, provider, login_url } = problem.body;
  return { act, acrValues: acr_values ?? [], maxAge: max_age ?? 900, provider, loginUrl: login_url };
}

export type ActResult<T> = { done: true; value: T } | { done: false; reason: 'step_up' };

/** Sends an act. A refusal for want of a fresh sign-in opens the step-up dialog; other failures throw. */
export async function performAct<T>(act: Act): Promise<ActResult<T>> {
  try {
    const value = await sendJSON<T>(act.method, act.path, act.body, act.ifMatch);
    const { unfinished } = act;
    const answer = value as Record<string, unknown> | undefined;
    notify(unfinished && answer?.[unfinished.member] === unfinished.equals ? unfinished.say : act.done);
    invalidateTopics(act.topics);
    return { done: true, value };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.needsStepUp) {
      setStepUp(stepUpOf(act, error));
      return { done: false, reason: 'step_up' };
    }
    // What was refused may have changed under the reader's eyes: a conflict shows the new state.
    if (error.status === 404 || error.status === 409 || error.status === 412) invalidateTopics(act.topics);
    throw error;
  }
}

export interface ActState {
  pending: boolean;
  problem?: unknown;
  perform: <T>(act: Act) => Promise<ActResult<T> | undefined>;
  reset: () => void;
}

/** One act's life in a dialog: pending, done or failed with its reason. */
export function useAct(): ActState {
  const [pending, setPending] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const perform = useCallback(async <T>(act: Act): Promise<ActResult<T> | undefined> => {
    setPending(true);
    setProblem(undefined);
    try {
      return await performAct<T>(act);
    } catch (error) {
      setProblem(error);
      return undefined;
    } finally {
      setPending(false);
    }
  }, []);
  const reset = useCallback(() => setProblem(undefined), []);
  return { pending, problem, perform, reset };
}
