import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { approvalQuery, approvalsQuery, registryQuery } from '../../api/queries';
import { Blank, ErrorBlank, Message } from '../../components/blank';
import { Chip } from '../../components/chip';
import { FilterChip } from '../../components/filters';
import { KeyHints } from '../../components/kbd';
import { ButtonLink } from '../../components/link';
import { PageHead } from '../../components/page';
import { Segments } from '../../components/seg';
import { Skeleton } from '../../components/skeleton';
import { State } from '../../components/state';
import { describeTime, RelativeTime } from '../../components/time';
import { formatRough, parseTime, shortAge } from '../../format/time';
import { shortenCommit } from '../../format/numbers';
import { approvalTabs } from '../../router-params';
import { useListKeys } from '../../state/list-keys';
import { useNow } from '../../state/now';
import { join, read, readLast, orElse } from '../../state/figure';
import { text } from '../../text';
import type { RegistryRow } from '../registry/health';
import { ApprovalDetail } from './detail';
import { assessRisk, type Approval } from './risk';
import { useQuery, type Reading } from '../../state/query';
import { EvidenceProvider, evidenceOf } from '../../components/evidence';

const route = getRouteApi('/shell/approvals');
const words = text.approvals;
const all = <T,>(list: T): T => list;

const listOf = (query: Reading<Approval[]>): readonly Approval[] => orElse(readLast(query), []);

/** The inbox of decisions: the list, and the chosen record with all that is needed to decide. */
export function ApprovalsScreen() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const { status = 'pending', kind = [], id } = search;
  const lists = {
    pending: useQuery(approvalsQuery('pending')),
    approving: useQuery(approvalsQuery('approving')),
    approved: useQuery(approvalsQuery('approved')),
    rejected: useQuery(approvalsQuery('rejected')),
    expired: useQuery(approvalsQuery('expired')),
  };
  const registry = useQuery(registryQuery).data?.registry.rows;
  const rowOf = (approval: Approval): RegistryRow | undefined =>
    registry?.find((row) => row.name.toLowerCase() === approval.model_id.toLowerCase());
  const query = lists[status];
  const known = status === 'pending' ? join(read(query, all), read(lists.approving, all), all) : read(query, all);
  const inTab = status === 'pending' ? [...listOf(lists.approving), ...listOf(lists.pending)] : listOf(query);
  const shown = inTab.filter((approval) => kind.length === 0 || kind.includes(approval.kind));
  // A link may name a record of another tab, or one that was decided meanwhile.
  const listed =
    id === undefined
      ? undefined
      : Object.values(lists)
          .flatMap(listOf)
          .find((approval) => approval.id === id);
  const single = useQuery({
    ...approvalQuery(id ?? ''),
    enabled: id !== undefined && listed === undefined && !query.isPending,
  });
  const current = id === undefined ? shown[0] : (listed ?? single.data);
  const select = (approval: Approval | undefined): void =>
    void navigate({
      from: '/approvals',
      to: '/approvals',
      search: (prev) => ({ ...prev, id: approval?.id }),
      replace: true,
      resetScroll: false,
    });

  useListKeys(
    shown.map((approval) => approval.id),
    current?.id,
    (next) => select(shown.find((approval) => approval.id === next)),
  );

  return (
    <>
      <PageHead
        title={words.title}
        says={[read(lists.pending, (list) => words.sub(list.length))]}
        actions={
          <>
            <FilterChip
              name={words.kind}
              value={kind}
              onChange={(value) =>
                void navigate({
                  from: '/approvals',
                  to: '/approvals',
                  search: (prev) => ({ ...prev, kind: value.length ? value : undefined }),
                  replace: true,
                })
              }
              options={(['retrain', 'promotion'] as const).map((each) => ({ id: each, label: words.kinds[each] }))}
            />
            <Segments
              label={words.tabs.label}
              value={status}
              onChange={(value) =>
                void navigate({
                  from: '/approvals',
                  to: '/approvals',
                  search: (prev) => ({ ...prev, status: value === 'pending' ? undefined : value, id: undefined }),
                  replace: true,
                })
              }
              segments={approvalTabs.map((value) => ({
                value,
                label: words.tabs[value],
                count: read(lists[value], (list) => list.length),
              }))}
            />
          </>
        }
      />
      <div className={id === undefined ? 'split' : 'split open'}>
        <div className="l">
          {query.isPending ? (
            <div className="sk-pad">
              <Skeleton shape="list" rows={5} />
            </div>
          ) : query.isError ? (
            <ErrorBlank error={query.error} onRetry={() => void query.refetch()} />
          ) : shown.length === 0 ? (
            <div className="pad-s">
              <Blank
                of={known}
                level={2}
                icon="approve"
                title={words.empty[status]}
                actions={
                  status === 'pending' ? (
                    <ButtonLink to="/approvals" search={{ status: 'approved' }}>
                      {words.seeApproved}
                    </ButtonLink>
                  ) : undefined
                }
              >
                {words.emptyHint}
              </Blank>
            </div>
          ) : (
            <>
              <EvidenceProvider value={known}>
                <ul className="inbox" aria-label={words.inbox} {...evidenceOf(known)}>
                  {shown.map((approval) => (
                    <InboxItem
                      key={approval.id}
                      approval={approval}
                      row={rowOf(approval)}
                      current={approval.id === current?.id}
                    />
                  ))}
                </ul>
              </EvidenceProvider>
              <div className="pad-s">
                <KeyHints
                  hints={[
                    ['j k', text.common.hints.move],
                    ['a', text.common.hints.approve],
                    ['r', text.common.hints.reject],
                  ]}
                />
              </div>
            </>
          )}
        </div>
        {current ? (
          <ApprovalDetail
            key={current.id}
            of={listed || id === undefined ? known : read(single, (approval) => approval)}
            approval={current}
            row={rowOf(current)}
            listLength={shown.length}
          />
        ) : (
          <article className="detail" aria-label={words.pick}>
            <div className="pad-s">
              {id !== undefined && single.isError ? (
                <Message level={2} icon="search" title={words.gone}>
                  {words.goneHint}
                </Message>
              ) : (
                !query.isPending && shown.length > 0 && <Message icon="approve" title={words.pick} />
              )}
            </div>
          </article>
        )}
      </div>
    </>
  );
}

function InboxItem({ approval, row, current }: { approval: Approval; row: RegistryRow | undefined; current: boolean }) {
  const now = useNow();
  const risk = assessRisk(approval, row);
  const expires = parseTime(approval.expires_at);
  const waits = approval.status === 'pending';
  return (
    <li>
      <Link
        from="/approvals"
        to="/approvals"
        search={(prev) => ({ ...prev, id: approval.id })}
        aria-current={current ? 'true' : undefined}
        activeProps={{}}
        data-item={approval.id}
        resetScroll={false}
        replace
      >
        <span className="row">
          <b className="strong trunc">{approval.model_id}</b>
          <Chip>{words.kinds[approval.kind]}</Chip>
        </span>
        <RelativeTime at={approval.requested_at} short />
        <span className="sub trunc">
          {approval.commit_msg || approval.commit_sha}
          {approval.kind === 'retrain' && <span className="faint"> {shortenCommit(approval.commit_sha)}</span>}
        </span>
        <span className="meta">
          {approval.status === 'approving' ? (
            <State kind="running">{words.approving}</State>
          ) : waits ? (
            <State kind={risk.kind}>{words.risk[risk.level]}</State>
          ) : (
            <span>{approval.resolved_by ?? words.tabs[approval.status as 'approved']}</span>
          )}
          <span className="trunc">{approval.requested_by}</span>
          {waits && expires && (
            <span className="end">
              {words.expiresIn(
                expires.getTime() - now.getTime() < shortAge
                  ? text.common.inFuture(formatRough(expires.getTime() - now.getTime()))
                  : describeTime(expires, now),
              )}
            </span>
          )}
        </span>
      </Link>
    </li>
  );
}
