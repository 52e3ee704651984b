import { useEffect, useState, type ReactNode } from 'react';
import { Problem } from '../api/problem';
import { useAct, type Act } from '../state/acts';
import { text } from '../text';
import { explainProblem } from './blank';
import { Button } from './button';
import { Dialog } from './dialog';
import { TextArea } from './field';
import { Note } from './note';

export interface ActDialogProps<T> {
  /** The question, naming act and object. */
  title: string;
  isOpen: boolean;
  onClose: () => void;
  /** Builds the act; `reason` is the typed reason, if one is required. */
  act: (reason: string) => Act;
  onDone?: (value: T) => void;
  danger?: boolean;
  reason?: { label: string; required?: boolean; placeholder?: string };
  /** Why the act cannot be confirmed now. */
  blocked?: string;
  wide?: boolean;
  children?: ReactNode;
}

/** Asks before an act: names its object, cost and whether it can be undone, and shows a refusal with its reason. */
export function ActDialog<T = unknown>({
  title,
  isOpen,
  onClose,
  act,
  onDone,
  danger,
  reason,
  blocked,
  wide,
  children,
}: ActDialogProps<T>) {
  const { pending, problem, perform, reset } = useAct();
  const [words, setWords] = useState('');
  useEffect(() => {
    if (isOpen) {
      setWords('');
      reset();
    }
  }, [isOpen, reset]);
  const trimmed = words.trim();
  const planned = act(trimmed);
  const missing = reason?.required && trimmed === '' ? reason.label : undefined;
  const confirm = async (): Promise<void> => {
    const result = await perform<T>(planned);
    if (!result) return;
    onClose();
    if (result.done) onDone?.(result.value);
  };
  return (
    <Dialog
      title={title}
      isOpen={isOpen}
      onClose={onClose}
      alert
      wide={wide}
      footer={
        <>
          <Button onPress={onClose}>{text.common.back}</Button>
          <Button
            kind={danger ? 'danger' : 'primary'}
            onPress={() => void confirm()}
            isDisabled={pending}
            disabledReason={blocked ?? missing}
          >
            {planned.confirm}
          </Button>
        </>
      }
    >
      {children}
      {reason && (
        <TextArea
          label={reason.label}
          value={words}
          onChange={setWords}
          isRequired={reason.required}
          placeholder={reason.placeholder}
          maxLength={4096}
          autoFocus
        />
      )}
      {problem !== undefined && <ProblemNote error={problem} />}
    </Dialog>
  );
}

/** A refusal of the reader's own act, announced at once. */
export function ProblemNote({ error }: { error: unknown }) {
  const { title, hint } = explainProblem(error);
  const fields = error instanceof Problem ? error.fields : [];
  return (
    <Note kind="critical" role="alert" title={title}>
      {hint}
      {fields.length > 0 && (
        <ul>
          {fields.map((field) => (
            <li key={field.loc.join('.') + field.msg}>
              <code>{field.loc.join('.')}</code> {field.msg}
            </li>
          ))}
        </ul>
      )}
    </Note>
  );
}
