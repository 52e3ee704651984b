import { Link } from '@tanstack/react-router';
import { compiler, type MarkdownToJSX } from 'markdown-to-jsx/react';
import { useMemo, type ReactNode } from 'react';
import { Icon } from '../../components/icon';
import { text } from '../../text';
import { numberAnchors, readDocLink } from './links';

/** Draws Markdown as elements. HTML in it is shown as text, pictures are named, and links are read by readDocLink. */
export default function DocMarkdown({ markdown, path }: { markdown: string; path: string }) {
  const content = useMemo(() => compiler(markdown, optionsOf(path)), [markdown, path]);
  return <div className="doc">{content}</div>;
}

function optionsOf(path: string): MarkdownToJSX.Options {
  return {
    disableParsingRawHTML: true,
    forceBlock: true,
    slugify: numberAnchors(),
    wrapper: 'div',
    overrides: {
      a: { component: ({ href, children }: { href?: string; children?: ReactNode }) => anchor(href, children, path) },
      img: { component: ({ alt }: { alt?: string }) => <span className="faint">[{alt}]</span> },
      // Wide tables and code scroll by themselves.
      table: {
        component: ({ children }: { children?: ReactNode }) => (
          <div className="doc-scroll" tabIndex={0} role="group" aria-label={text.documents.title}>
            <table className="table">{children}</table>
          </div>
        ),
      },
      pre: {
        component: ({ children }: { children?: ReactNode }) => (
          <pre className="doc-code" tabIndex={0}>
            {children}
          </pre>
        ),
      },
      iframe: { component: () => null },
      script: { component: () => null },
      style: { component: () => null },
    },
  };
}

function anchor(href: string | undefined, children: ReactNode, from: string): ReactNode {
  const link = readDocLink(href, from);
  switch (link.kind) {
    case 'page':
      return (
        <Link className="link" to="/documents" search={{ path: link.path }} hash={link.hash}>
          {children}
        </Link>
      );
    case 'hash':
      return (
        <Link className="link" to="/documents" search={{ path: from }} hash={link.hash}>
          {children}
        </Link>
      );
    case 'external':
      return (
        <a className="link" href={link.href} rel="noreferrer noopener" target="_blank">
          {children}
          <Icon name="open" small />
          <span className="vh"> ({text.documents.external})</span>
        </a>
      );
    case 'none':
      return <span className="med">{children}</span>;
  }
}
