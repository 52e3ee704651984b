import { nameMetric } from '../text/metrics';

/** A metric by its name, with the key it is stored under. */
export function MetricName({ metric }: { metric: string }) {
  const name = nameMetric(metric);
  if (name === metric) return <>{metric}</>;
  return (
    <>
      {name} <code className="small faint hide-s">{metric}</code>
    </>
  );
}
