import { keepPreviousData } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useCallback, useEffect, useRef } from 'react';
import type { components } from '../../api/gen/dashboard';
import { searchQuery } from '../../api/queries';
import { Blank, Message } from '../../components/blank';
import { TextFilter } from '../../components/filters';
import { Icon, type IconName } from '../../components/icon';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { read } from '../../state/figure';
import { text } from '../../text';
import { useQuery } from '../../state/query';

const route = getRouteApi('/shell/search');
const words = text.search;
type Result = components['schemas']['SearchResult'];

const MOST = 100;

const icons: Record<string, IconName> = {
  model: 'cube',
  job: 'server',
  approval: 'approve',
  alert: 'bell',
  audit: 'list',
  page: 'book',
  heading: 'book',
};

/** Returns the address of a result within this UI; anything else is not followed. */
export function placeOf(result: Pick<Result, 'url'>): string | undefined {
  return /^\/(?![/\\])/.test(result.url) && !result.url.startsWith('/api/') ? result.url : undefined;
}

const bestOf = (results: readonly Result[]): number => Math.max(...results.map((result) => result.score));

export function SearchScreen() {
  const { q = '' } = route.useSearch();
  const navigate = useNavigate({ from: '/search' });
  const query = useQuery({ ...searchQuery(q, MOST), placeholderData: keepPreviousData });
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.querySelector('input')?.focus(), []);
  const setQ = useCallback(
    (value: string) => void navigate({ search: (old) => ({ ...old, q: value || undefined }), replace: true }),
    [navigate],
  );
  const found = query.data?.search;
  return (
    <>
      <PageHead
        title={words.title}
        says={q.trim() ? [read(query, (view) => words.found(view.search.count, q))] : undefined}
      />
      <div className="stack search-page">
        <div ref={box}>
          <TextFilter label={words.label} value={q} onChange={setQ} />
        </div>
        {q.trim() === '' ? (
          <Panel title={words.results} flush>
            <Message icon="search" title={words.start}>
              {words.startHint}
            </Message>
          </Panel>
        ) : found === undefined || found.count === 0 ? (
          <QueryPanel
            title={words.results}
            query={query}
            flush
            empty={(_, of) => (
              <Blank of={of} icon="search" title={words.none(q)}>
                {words.noneHint}
              </Blank>
            )}
          >
            {() => null}
          </QueryPanel>
        ) : (
          Object.entries(found.groups)
            .filter(([, results]) => results.length > 0)
            // The group with the best match comes first.
            .sort(([, a], [, b]) => bestOf(b) - bestOf(a))
            .map(([source, results]) => (
              <QueryPanel
                key={source}
                title={words.sources[source] ?? source}
                query={query}
                note={results.length}
                flush
                hideAsOf
              >
                {() => (
                  <ul className="list found">
                    {results.map((result) => (
                      <ResultRow key={result.kind + result.id} result={result} />
                    ))}
                  </ul>
                )}
              </QueryPanel>
            ))
        )}
      </div>
    </>
  );
}

function ResultRow({ result }: { result: Result }) {
  const navigate = useNavigate();
  const place = placeOf(result);
  const content = (
    <>
      <Icon name={icons[result.kind] ?? 'link'} small />
      <span className="ttl trunc" title={result.label}>
        {result.label}
      </span>
      <code className="end faint small trunc found-id" title={result.id}>
        {result.id}
      </code>
    </>
  );
  return (
    <li>
      {place ? (
        <a
          href={place}
          onClick={(event) => {
            if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
            event.preventDefault();
            void navigate({ href: place });
          }}
        >
          {content}
        </a>
      ) : (
        <span className="item">{content}</span>
      )}
    </li>
  );
}
