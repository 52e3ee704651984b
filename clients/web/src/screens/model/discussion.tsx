import { useState } from 'react';
import { commentsQuery } from '../../api/queries';
import { ProblemNote } from '../../components/act-dialog';
import { ErrorBlank } from '../../components/blank';
import { Button } from '../../components/button';
import { TextArea } from '../../components/field';
import { Skeleton } from '../../components/skeleton';
import { RelativeTime } from '../../components/time';
import { useAct } from '../../state/acts';
import { useMay, useMe } from '../../state/auth';
import { text } from '../../text';
import { useQuery } from '../../state/query';
import { Show } from '../../components/figure';
import { read } from '../../state/figure';

const words = text.model.discussion;

/** The comments on an object, oldest first. The HTML was made safe by the server. */
export function Discussion({ type, id }: { type: string; id: string }) {
  const query = useQuery(commentsQuery(type, id));
  const me = useMe();
  const mayWrite = useMay('comment.write');
  const [draft, setDraft] = useState('');
  const { pending, problem, perform } = useAct();
  const path = `/api/v1/collab/${type}/${encodeURIComponent(id)}/comments`;
  const send = async (): Promise<void> => {
    const result = await perform({
      title: words.send,
      method: 'POST',
      path,
      body: { body: draft.trim() },
      confirm: words.send,
      done: words.sent,
      topics: ['comments'],
    });
    if (result?.done) setDraft('');
  };
  const remove = (commentId: string): void =>
    void perform({
      title: words.remove,
      method: 'DELETE',
      path: `${path}/${commentId}`,
      confirm: words.remove,
      done: words.removed,
      topics: ['comments'],
    });
  if (query.isPending) return <Skeleton shape="text" />;
  if (query.isError) return <ErrorBlank error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <div className="stack-s">
      {query.data.comments.length === 0 && (
        <p className="muted">
          <Show figure={read(query, (data) => data.comments)}>{() => words.none}</Show>
        </p>
      )}
      <ul className="comments">
        {query.data.comments.map((comment) => (
          <li key={comment.id}>
            <div className="row small">
              <b className="med">{comment.author_name ?? comment.author}</b>
              <span className="faint">
                <RelativeTime at={comment.created_at} />
              </span>
              {!comment.deleted && (comment.author === me?.sub || me?.role === 'admin') && (
                <Button
                  kind="ghost"
                  icon="x"
                  iconOnly
                  small
                  className="end"
                  label={words.remove}
                  onPress={() => remove(comment.id)}
                />
              )}
            </div>
            {comment.deleted ? (
              <p className="faint">{words.deleted}</p>
            ) : comment.bodyHtml ? (
              <div className="prose" dangerouslySetInnerHTML={{ __html: comment.bodyHtml }} />
            ) : (
              <p>{comment.body}</p>
            )}
          </li>
        ))}
      </ul>
      {mayWrite && (
        <>
          <TextArea
            label={words.label}
            quietLabel
            placeholder={words.placeholder}
            value={draft}
            onChange={setDraft}
            maxLength={4000}
          />
          {problem !== undefined && <ProblemNote error={problem} />}
          <div className="row">
            <span className="small faint grow">{words.hint}</span>
            <Button onPress={() => void send()} isDisabled={pending || draft.trim() === ''}>
              {words.send}
            </Button>
          </div>
        </>
      )}
    </div>
  );
}
