import { Fragment } from 'react';
import { text } from '../text';
import { readProse, type Block, type Span } from './prose';

/** The assistant's words. Text only: a quoted log line cannot become a link or markup. */
export function Answer({ words }: { words: string }) {
  return (
    <div className="finding prose">
      {readProse(words).map((block, i) => (
        <BlockView key={i} block={block} />
      ))}
    </div>
  );
}

function Spans({ spans }: { spans: readonly Span[] }) {
  return spans.map((span, i) => {
    if (span.kind === 'code') return <code key={i}>{span.text}</code>;
    if (span.kind === 'strong')
      return (
        <b key={i} className="strong">
          <Inner words={span.text} />
        </b>
      );
    if (span.kind === 'em') return <em key={i}>{span.text}</em>;
    return <Fragment key={i}>{span.text}</Fragment>;
  });
}

/** Strong words may hold code: "Deployment `api`". */
function Inner({ words }: { words: string }) {
  return words.split('`').map((part, i) => (i % 2 ? <code key={i}>{part}</code> : <Fragment key={i}>{part}</Fragment>));
}

function BlockView({ block }: { block: Block }) {
  switch (block.kind) {
    case 'paragraph':
      return (
        <p>
          <Spans spans={block.spans} />
        </p>
      );
    case 'heading':
      return (
        <h3>
          <Spans spans={block.spans} />
        </h3>
      );
    case 'list': {
      const items = block.items.map((item, i) => (
        <li key={i} data-depth={item.depth || undefined}>
          <Spans spans={item.spans} />
        </li>
      ));
      return block.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case 'code':
      return (
        <pre className="cmd" tabIndex={0} aria-label={text.assistant.code}>
          {block.text}
        </pre>
      );
    case 'table':
      return (
        <div className="tablewrap data-rows" tabIndex={0} role="group" aria-label={text.assistant.table}>
          <table className="table">
            <thead>
              <tr>
                {block.head.map((cell, i) => (
                  <th key={i} scope="col">
                    <Spans spans={cell} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, i) => (
                <tr key={i}>
                  {row.map((cell, j) => (
                    <td key={j}>
                      <Spans spans={cell} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
  }
}
