import { text } from '../text';

export type SkeletonShape = 'text' | 'table' | 'list' | 'chart' | 'figures';

const widths = ['w70', 'w90', 'w50', 'w70', 'w35'];

/** The outline of what is loading; it appears after 150 ms, so that fast answers do not flicker. */
export function Skeleton({ shape, rows = 4 }: { shape: SkeletonShape; rows?: number }) {
  return (
    <div className="sks late-in" role="status" aria-label={text.common.loading}>
      {shape === 'figures' ? (
        <div className="figures">
          {Array.from({ length: 5 }, (_, i) => (
            <div key={i}>
              <div className="sk w50" />
              <div className="sk w70 tall" />
              <div className="sk w35" />
            </div>
          ))}
        </div>
      ) : shape === 'chart' ? (
        <>
          <div className="sk w20" />
          <div className="sk h80 chart-h" />
          <div className="sk w50" />
        </>
      ) : (
        Array.from({ length: rows }, (_, i) => (
          <div key={i} className={shape === 'text' ? `sk ${widths[i % widths.length]}` : `sk-row ${shape}`}>
            {shape !== 'text' && (
              <>
                <div className="sk w20" />
                <div className={`sk ${widths[i % widths.length]}`} />
              </>
            )}
          </div>
        ))
      )}
    </div>
  );
}
