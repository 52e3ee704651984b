import { getRouteApi, Link, useLocation, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useCallback, useEffect, useMemo } from 'react';
import { Problem } from '../../api/problem';
import { docsPageQuery, docsTreeQuery } from '../../api/queries';
import { Blank, ErrorBlank, Message } from '../../components/blank';
import { TextFilter } from '../../components/filters';
import { PageHead } from '../../components/page';
import { Panel, QueryPanel } from '../../components/panel';
import { Skeleton } from '../../components/skeleton';
import { text } from '../../text';
import { headingsOf } from './links';
import { useQuery } from '../../state/query';
import { readLast, orElse } from '../../state/figure';

const DocMarkdown = lazy(() => import('./markdown'));
const route = getRouteApi('/shell/documents');
const words = text.documents;

export function DocumentsScreen() {
  const { path: chosen, q } = route.useSearch();
  const navigate = useNavigate({ from: '/documents' });
  const tree = useQuery(docsTreeQuery);
  const path = chosen ?? tree.data?.[0]?.files[0]?.path;
  const page = useQuery({ ...docsPageQuery(path ?? ''), enabled: path !== undefined });
  const title = tree.data?.flatMap((section) => section.files).find((file) => file.path === path)?.title;
  const setQ = useCallback(
    (value: string) =>
      void navigate({ search: (old) => ({ ...old, q: value || undefined }), replace: true, resetScroll: false }),
    [navigate],
  );
  const needle = (q ?? '').trim().toLowerCase();
  const headings = useMemo(() => headingsOf(orElse(readLast(page), '')), [page.data]);
  return (
    <>
      <PageHead title={title ?? words.title} heading={words.title} sub={words.sub} />
      <div className="docs">
        <QueryPanel
          title={words.tree}
          query={tree}
          flush
          hideAsOf
          className="docs-tree"
          empty={(sections, of) =>
            sections.every((section) => section.files.length === 0) ? (
              <Blank of={of} icon="book" title={words.none}>
                {words.noneHint}
              </Blank>
            ) : undefined
          }
        >
          {(sections) => (
            <>
              <div className="docs-filter">
                <TextFilter label={words.filter} value={q ?? ''} onChange={setQ} />
              </div>
              <nav aria-label={words.tree}>
                {sections
                  .map((section) => ({
                    ...section,
                    files: section.files.filter((file) => file.title.toLowerCase().includes(needle)),
                  }))
                  .filter((section) => section.files.length > 0)
                  .map((section) => (
                    <section key={section.key} aria-label={section.title}>
                      <h3>{section.title}</h3>
                      <ul>
                        {section.files.map((file) => (
                          <li key={file.path}>
                            <Link
                              to="/documents"
                              search={(old) => ({ ...old, path: file.path }) as never}
                              activeProps={{}}
                              aria-current={file.path === path ? 'page' : undefined}
                            >
                              {file.title}
                            </Link>
                          </li>
                        ))}
                      </ul>
                    </section>
                  ))}
              </nav>
            </>
          )}
        </QueryPanel>
        <Panel title={title ?? path ?? words.choose} flush className="docs-page">
          {page.data !== undefined && path ? (
            <Suspense fallback={<Loading />}>
              <DocMarkdown markdown={page.data} path={path} />
              <ScrollToHash />
            </Suspense>
          ) : page.isError ? (
            page.error instanceof Problem && (page.error.status === 404 || page.error.status === 400) ? (
              <Message icon="search" title={words.notFound}>
                {words.notFoundHint}
              </Message>
            ) : (
              <ErrorBlank error={page.error} onRetry={() => void page.refetch()} />
            )
          ) : tree.isError ? (
            <Message icon="book" title={words.choose} />
          ) : (
            <Loading />
          )}
        </Panel>
        {headings.length > 2 && path && (
          <nav className="docs-toc" aria-label={words.onPage}>
            <h3>{words.onPage}</h3>
            <ul>
              {headings.map((heading) => (
                <li key={heading.anchor} className={heading.level > 2 ? 'deep' : undefined}>
                  <Link to="/documents" search={(old) => ({ ...old, path }) as never} hash={heading.anchor}>
                    {heading.title}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
        )}
      </div>
    </>
  );
}

function Loading() {
  return (
    <div className="sk-pad">
      <Skeleton shape="text" rows={10} />
    </div>
  );
}

/** The heading that the address names exists only once the page is drawn. */
function ScrollToHash() {
  const hash = useLocation({ select: (location) => location.hash });
  useEffect(() => {
    if (hash) document.getElementById(hash)?.scrollIntoView({ block: 'start' });
  }, [hash]);
  return null;
}
