import { servedQuery } from '../../api/queries';
import { Blank } from '../../components/blank';
import { useEvidence } from '../../components/evidence';
import { FigureParts, Show } from '../../components/figure';
import { Icon } from '../../components/icon';
import { Panel } from '../../components/panel';
import { RelativeTime } from '../../components/time';
import { formatCount, formatMoney, shortenCommit, shortenHash } from '../../format/numbers';
import { mapFigure, orElse, read, type Figure } from '../../state/figure';
import { text } from '../../text';
import type { Version } from './compare';
import { useQuery } from '../../state/query';

const words = text.model;

/** Where a version came from and where it is now. */
export function LineagePanel({ model, version }: { model: string; version: Figure<Version | undefined> }) {
  return (
    <FigureParts figure={version} title={words.versions.title}>
      {(each) => <Lineage model={model} version={each} />}
    </FigureParts>
  );
}

function Lineage({ model, version }: { model: string; version: Version | undefined }) {
  const of = useEvidence();
  const copies = read(useQuery(servedQuery), (all) =>
    all.filter(
      (each) =>
        each.model_name.toLowerCase() === model.toLowerCase() && each.model_version === String(version?.version),
    ),
  );
  const lineage = words.lineage;
  if (!version)
    return (
      <Panel title={words.versions.title} flush>
        <Blank of={of} icon="cube" title={lineage.none} />
      </Panel>
    );
  const tags = version.tags ?? {};
  const commit = tags.modelrepo_commit ?? tags.commit_sha;
  const dataset = version.params?.dataset ?? tags.dataset ?? tags.dataset_name;
  const copy = orElse(copies, undefined)?.[0];
  return (
    <Panel title={lineage.title(String(version.version))}>
      <ol className="vlin">
        {commit && (
          <li>
            <Icon name="commit" small />
            <span>
              <b>{shortenCommit(commit)}</b> {lineage.commit}
            </span>
          </li>
        )}
        {(dataset ?? tags.dataset_version) && (
          <li>
            <Icon name="table" small />
            <span>
              <b>{dataset ?? lineage.dataset}</b>{' '}
              {tags.training_rows && lineage.rows(formatCount(Number(tags.training_rows)))}
              {tags.dataset_version && <small>{shortenHash(tags.dataset_version)}</small>}
            </span>
          </li>
        )}
        <li>
          <Icon name="runs" small />
          <span>
            <b>
              {lineage.run} {shortenHash(version.runId)}
            </b>
            <small>
              {[tags.gpu_hours && `${tags.gpu_hours} GPU h`, tags.cost_usd && formatMoney(Number(tags.cost_usd))]
                .filter(Boolean)
                .join(', ')}
            </small>
          </span>
        </li>
        <li className="on">
          <Icon name="cube" small />
          <span>
            <b>
              {lineage.version} {version.version}
            </b>{' '}
            <RelativeTime at={version.createdAt} />
            {copy?.digest && (
              <small>
                sha256 {shortenHash(copy.digest)}, {copy.verified ? lineage.verified : lineage.unverified}
              </small>
            )}
          </span>
        </li>
        {version.aliases.map((alias) => {
          return (
            <li key={alias}>
              <Icon name="server" small />
              <span>
                <b>{lineage.served(alias)}</b>
                <small>
                  <Show figure={mapFigure(copies, (all) => all.find((each) => each.alias === alias))}>
                    {(loaded) =>
                      loaded ? (
                        <>
                          {lineage.loaded} <RelativeTime at={loaded.loaded_at} />
                        </>
                      ) : (
                        lineage.notLoaded
                      )
                    }
                  </Show>
                </small>
              </span>
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}
