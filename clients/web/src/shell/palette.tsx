import { keepPreviousData } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { useEffect, useRef, useState } from 'react';
import { Dialog as AriaDialog, Modal, ModalOverlay } from 'react-aria-components';
import type { components } from '../api/gen/dashboard';
import { flagsQuery, searchQuery } from '../api/queries';
import { Show } from '../components/figure';
import { Icon, type IconName } from '../components/icon';
import { Keys } from '../components/kbd';
import { useMay, useMe } from '../state/auth';
import { read } from '../state/figure';
import { choicesOf, storePreference } from '../state/preferences';
import { text } from '../text';
import { visibleGroups } from './nav';
import { Pace } from './pace';
import { useQuery } from '../state/query';

const words = text.shell.palette;
type Result = components['schemas']['SearchResult'];
/** Rows requested from the server. */
const MOST = 20;
/** The server searches from this many letters on: one letter finds most of what there is. */
const LEAST = 2;

/** Matches what contains every typed word; letters scattered over a name are no match. A word's beginning counts more. */
export function matchWords(value: string, search: string): number {
  const text = value.toLowerCase();
  const typed = search.toLowerCase().trim().split(/\s+/);
  if (!typed.every((word) => text.includes(word))) return 0;
  return typed.every((word) => text.startsWith(word) || text.includes(` ${word}`)) ? 1 : 0.5;
}
const kindIcons: Record<string, IconName> = {
  model: 'cube',
  doc: 'book',
  docs: 'book',
  page: 'book',
  heading: 'book',
  run: 'runs',
  job: 'server',
  approval: 'approve',
  alert: 'bell',
  audit: 'list',
};

/** Searches at once while typing begins, then two a second: the server takes 30 in 10 s from a person. */
const pace = new Pace({ burst: 8, every: 500 });

/** Returns the text to search for: that of each key at once, of the newest only while keys come faster than the pace. */
function usePaced(text: string): string {
  const [sent, setSent] = useState(text);
  useEffect(() => {
    if (text === sent) return;
    const send = (): void => {
      if (text !== '') pace.take(performance.now());
      setSent(text);
    };
    const wait = text === '' ? 0 : pace.wait(performance.now());
    if (wait === 0) {
      send();
      return;
    }
    const timer = setTimeout(send, wait);
    return () => clearTimeout(timer);
  }, [text, sent]);
  return sent;
}

/** Models, pages, acts and everything the search finds, by keyboard. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState('');
  const navigate = useNavigate();
  const me = useMe();
  const mayRetrain = useMay('retrain.trigger');
  const mayPromote = useMay('model.promote');
  const flags = useQuery(flagsQuery).data?.flags;
  const typed = query.trim();
  // "retrain x" lists what can be retrained: the server looks for the name.
  const [, act = '', subject = ''] = /^(?:(retrain|promote)\s+)?(.*)$/i.exec(typed) ?? [];
  const isSearched = [...subject].length >= LEAST;
  const sent = usePaced(isSearched ? subject : '');
  const asked = useQuery({
    ...searchQuery(sent, MOST),
    enabled: isSearched && sent !== '',
    placeholderData: keepPreviousData,
  });
  const results = read(asked, (view) => view.search.results);
  const found = isSearched && asked.data !== undefined ? asked.data.search.results : [];
  const models = found.filter((result) => result.kind === 'model');
  const go = (run: () => unknown): void => {
    onClose();
    run();
  };
  const pages = [
    ...visibleGroups({ isAdmin: me?.role === 'admin', flags }).flatMap((group) => group.entries),
    {
      key: 'preferences',
      icon: 'gear' as const,
      label: text.shell.nav.preferences,
      to: '/preferences',
      letter: undefined,
    },
  ].filter((page) => matchWords(`go ${page.label}`, typed) > 0);
  const themes = choicesOf('theme').filter((theme) => matchWords(words.theme(text.shell.themes[theme]), typed) > 0);
  // The server's results arrive after the keystroke that requested them: the best of them is chosen then.
  const best = models[0] && (act === '' ? `model ${models[0].id}` : `do ${act.toLowerCase()} ${models[0].id}`);
  const [chosen, setChosen] = useState('');
  useEffect(() => {
    if (best !== undefined) setChosen(best);
  }, [best]);
  const retrain = (model: Result, key = model.id) => (
    <Item
      key={key}
      value={`do retrain ${model.id}`}
      icon="retry"
      title={words.retrain(model.label)}
      onSelect={() =>
        go(() => navigate({ to: '/models/$name', params: { name: model.id }, search: { act: 'retrain' } }))
      }
    />
  );
  const promote = (model: Result, key = model.id) => (
    <Item
      key={key}
      value={`do promote ${model.id}`}
      icon="up"
      title={words.promote(model.label)}
      onSelect={() => go(() => navigate({ to: '/models/$name/promote', params: { name: model.id } }))}
    />
  );
  // The acts of the model that was chosen last follow it, so that the next step down reaches them. Their rows move from
  // model to model: cmdk goes to the first row when the chosen one is removed. The pointer does not choose, as what
  // moves under it would be chosen in turn.
  const acting = useRef<string>(undefined);
  acting.current = /^(?:model|do retrain|do promote) (.*)$/.exec(chosen)?.[1] ?? acting.current;
  const active = models.find((model) => model.id === acting.current) ?? models[0];
  return (
    <ModalOverlay className="scrim" isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className="palette-m">
        <AriaDialog aria-label={words.label}>
          {/* The server finds and ranks: what is here is drawn as it is. */}
          <Command
            className="palette"
            label={words.label}
            loop
            shouldFilter={false}
            disablePointerSelection
            value={chosen}
            onValueChange={setChosen}
          >
            <div className="q">
              <Icon name="search" />
              <Command.Input
                value={query}
                onValueChange={setQuery}
                placeholder={words.placeholder}
                maxLength={200}
                autoFocus
              />
              <Keys keys="Esc" />
            </div>
            <Command.List className="res" label={words.label}>
              {act === '' && models.length > 0 && (
                <Command.Group heading={words.models}>
                  {models.flatMap((model) => [
                    <Item
                      key={`model ${model.id}`}
                      value={`model ${model.id}`}
                      icon="cube"
                      title={model.label}
                      onSelect={() => go(() => navigate({ href: model.url }))}
                    />,
                    ...(model === active
                      ? [mayRetrain && retrain(model, 'retrain'), mayPromote && promote(model, 'promote')]
                      : []),
                  ])}
                </Command.Group>
              )}
              {pages.length > 0 && (
                <Command.Group heading={words.goTo}>
                  {pages.map((page) => (
                    <Item
                      key={page.key}
                      value={`go ${page.key}`}
                      icon={page.icon}
                      title={page.label}
                      onSelect={() => go(() => navigate({ to: page.to }))}
                      end={page.letter ? <Keys keys={`g ${page.letter}`} /> : undefined}
                    />
                  ))}
                </Command.Group>
              )}
              <Command.Group heading={words.run}>
                {mayRetrain && /^retrain/i.test(act) && models.map((model) => retrain(model))}
                {mayPromote && /^promote/i.test(act) && models.map((model) => promote(model))}
                {themes.map((theme) => (
                  <Item
                    key={theme}
                    value={`do theme ${theme}`}
                    icon="moon"
                    title={words.theme(text.shell.themes[theme])}
                    onSelect={() => go(() => storePreference('theme', theme))}
                  />
                ))}
              </Command.Group>
              {typed !== '' && (
                <Command.Group heading={words.found}>
                  {found
                    .filter((result) => result.kind !== 'model')
                    .map((result) => (
                      <Item
                        key={`${result.kind}/${result.id}`}
                        value={`found ${result.kind} ${result.id}`}
                        icon={kindIcons[result.kind] ?? 'search'}
                        title={result.label}
                        detail={result.kind}
                        onSelect={() => go(() => navigate({ href: result.url }))}
                      />
                    ))}
                  {isSearched &&
                    sent === subject &&
                    !asked.isPlaceholderData &&
                    (results.kind !== 'measured' || found.length === 0) &&
                    results.kind !== 'loading' && (
                      <p className="pad-s muted" role="status">
                        <Show figure={results}>{() => words.none}</Show>
                      </p>
                    )}
                  <Item
                    value="search"
                    icon="search"
                    title={words.searchAll(typed)}
                    onSelect={() => go(() => navigate({ to: '/search', search: { q: typed } }))}
                  />
                </Command.Group>
              )}
            </Command.List>
            <footer>
              <span>
                <Keys keys="↑ ↓" /> {words.hints.move}
              </span>
              <span>
                <Keys keys="Enter" /> {words.hints.open}
              </span>
              <span>
                <Keys keys="Esc" /> {words.hints.close}
              </span>
            </footer>
          </Command>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

function Item({
  value,
  icon,
  title,
  detail,
  end,
  onSelect,
}: {
  value: string;
  icon: IconName;
  title: string;
  detail?: string;
  end?: React.ReactNode;
  onSelect: () => void;
}) {
  return (
    <Command.Item className="opt" value={value} onSelect={onSelect}>
      <Icon name={icon} small />
      <b className="trunc" title={title}>
        {title}
      </b>
      <span className="trunc">{detail}</span>
      <span className="end">{end}</span>
    </Command.Item>
  );
}
