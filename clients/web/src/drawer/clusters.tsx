import { useEffect, useRef, useState } from 'react';
import { Problem } from '../api/problem';
import { assistantClustersQuery } from '../api/queries';
import { Button } from '../components/button';
import { Select } from '../components/field';
import { readCluster, storeCluster } from '../state/preferences';
import { text } from '../text';
import type { ConversationState } from './conversation';
import { useQuery } from '../state/query';

const words = text.assistant.clusters;

export interface Clusters {
  names: readonly string[];
  /** The one that a new conversation is about; undefined leaves it to the assistant. */
  chosen: string | undefined;
  choose: (name: string) => void;
}

/** The assistant's clusters and the person's choice, which counts while the assistant has it. */
export function useClusters(problem: unknown): Clusters {
  const { data, refetch } = useQuery(assistantClustersQuery);
  const [wanted, setWanted] = useState(readCluster);
  // The list is not what it was.
  useEffect(() => {
    if (isOfCluster(problem)) void refetch();
  }, [problem, refetch]);
  return {
    names: data ?? [],
    // Without the list the choice is sent unchecked: the assistant would take no name for its first cluster.
    chosen: data === undefined || (wanted !== undefined && data.includes(wanted)) ? wanted : data[0],
    choose: (name) => {
      storeCluster(name);
      setWanted(name);
    },
  };
}

/** Reports whether a question was refused because of its cluster. */
export function isOfCluster(problem: unknown): boolean {
  return problem instanceof Problem && (problem.code === 'other_cluster' || isUnknownCluster(problem));
}

/** Reports whether the assistant does not have the cluster that a question named. */
export function isUnknownCluster(problem: unknown): boolean {
  return problem instanceof Problem && problem.fields.some(({ loc }) => loc.join('.') === 'body.cluster');
}

/** Returns the cluster of the session; undefined without one, or while it is not known. */
function clusterOf({ session, cluster }: ConversationState, names: readonly string[]): string | undefined {
  return session ? cluster || (cluster === '' ? names[0] : undefined) : undefined;
}

export interface ClusterBarProps {
  clusters: Clusters;
  state: ConversationState;
  onFresh: () => void;
}

/** Shows which cluster is asked about, and takes the choice for new conversations: one that has begun keeps its own. */
export function ClusterBar({ clusters: { names, chosen, choose }, state, onFresh }: ClusterBarProps) {
  const bar = useRef<HTMLDivElement>(null);
  const [wanted, setWanted] = useState<string>();
  const own = clusterOf(state, names);
  if (names.length < 2 || (state.session && own === undefined)) return null;
  const other = own !== undefined && wanted !== own ? wanted : undefined;
  const gone = own !== undefined && !names.includes(own);
  return (
    <div className="of-cluster" ref={bar}>
      <Select
        label={words.label}
        value={own ?? chosen ?? null}
        options={[
          ...names.map((name) => ({ id: name, label: name })),
          ...(gone ? [{ id: own, label: own, detail: words.gone }] : []),
        ]}
        onChange={(name) => {
          setWanted(own === undefined ? undefined : name);
          if (names.includes(name)) choose(name);
        }}
      />
      <p className="small faint" role="status">
        {other !== undefined && own !== undefined && words.keeps(own)}
      </p>
      {other !== undefined && (
        <Button
          icon="plus"
          onPress={() => {
            // This button goes away; the focus must not go with it.
            bar.current?.querySelector('button')?.focus();
            setWanted(undefined);
            onFresh();
          }}
        >
          <span>{words.fresh(other)}</span>
        </Button>
      )}
    </div>
  );
}
