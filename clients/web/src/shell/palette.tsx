import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { useEffect, useState } from 'react';
import { Dialog as AriaDialog, Modal, ModalOverlay } from 'react-aria-components';
import { flagsQuery, registryQuery, searchQuery } from '../api/queries';
import { Icon, type IconName } from '../components/icon';
import { Keys } from '../components/kbd';
import { State } from '../components/state';
import { healthOf } from '../screens/registry/health';
import { useMay, useMe } from '../state/auth';
import { choicesOf, storePreference } from '../state/preferences';
import { text } from '../text';
import { visibleGroups } from './nav';

const words = text.shell.palette;

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

/** Returns the text half a key press later, so that a search is asked once per word. */
function useDebounced(value: string, wait: number): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), wait);
    return () => clearTimeout(timer);
  }, [value, wait]);
  return settled;
}

/** Models, pages, acts and everything the search finds, by keyboard. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState('');
  const navigate = useNavigate();
  const me = useMe();
  const mayRetrain = useMay('retrain.trigger');
  const mayPromote = useMay('model.promote');
  const flags = useQuery(flagsQuery).data?.flags;
  const models = useQuery(registryQuery).data?.registry.rows ?? [];
  const found = useQuery(searchQuery(useDebounced(query, 160)));
  const go = (run: () => unknown): void => {
    onClose();
    run();
  };
  const typed = query.trim() !== '';
  const others = (found.data?.search.results ?? []).filter((result) => result.kind !== 'model');
  return (
    <ModalOverlay className="scrim" isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className="palette-m">
        <AriaDialog aria-label={words.label}>
          <Command className="palette" label={words.label} loop filter={matchWords}>
            <div className="q">
              <Icon name="search" />
              <Command.Input value={query} onValueChange={setQuery} placeholder={words.placeholder} autoFocus />
              <Keys keys="Esc" />
            </div>
            <Command.List className="res" label={words.label}>
              <Command.Empty className="pad-s muted">{words.none}</Command.Empty>
              <Command.Group heading={words.models}>
                {models.slice(0, typed ? undefined : 5).map((row) => {
                  const health = healthOf(row);
                  return (
                    <Item
                      key={row.name}
                      value={`model ${row.name}`}
                      icon="cube"
                      title={row.name}
                      detail={row.description ?? ''}
                      onSelect={() => go(() => navigate({ to: '/models/$name', params: { name: row.name } }))}
                      end={<State kind={health.kind} />}
                    />
                  );
                })}
              </Command.Group>
              <Command.Group heading={words.goTo}>
                {visibleGroups({ isAdmin: me?.role === 'admin', flags }).flatMap((group) =>
                  group.entries.map((entry) => (
                    <Item
                      key={entry.key}
                      value={`go ${entry.label}`}
                      icon={entry.icon}
                      title={entry.label}
                      onSelect={() => go(() => navigate({ to: entry.to }))}
                      end={entry.letter ? <Keys keys={`g ${entry.letter}`} /> : undefined}
                    />
                  )),
                )}
                <Item
                  value={`go ${text.shell.nav.preferences}`}
                  icon="gear"
                  title={text.shell.nav.preferences}
                  onSelect={() => go(() => navigate({ to: '/preferences' }))}
                />
              </Command.Group>
              <Command.Group heading={words.run}>
                {typed &&
                  mayRetrain &&
                  models.map((row) => (
                    <Item
                      key={row.name}
                      value={`do retrain ${row.name}`}
                      icon="retry"
                      title={words.retrain(row.name)}
                      onSelect={() =>
                        go(() =>
                          navigate({ to: '/models/$name', params: { name: row.name }, search: { act: 'retrain' } }),
                        )
                      }
                    />
                  ))}
                {typed &&
                  mayPromote &&
                  models.map((row) => (
                    <Item
                      key={row.name}
                      value={`do promote ${row.name}`}
                      icon="up"
                      title={words.promote(row.name)}
                      onSelect={() => go(() => navigate({ to: '/models/$name/promote', params: { name: row.name } }))}
                    />
                  ))}
                {choicesOf('theme').map((theme) => (
                  <Item
                    key={theme}
                    value={`do theme ${theme}`}
                    icon="moon"
                    title={words.theme(text.shell.themes[theme])}
                    onSelect={() => go(() => storePreference('theme', theme))}
                  />
                ))}
              </Command.Group>
              {typed && (
                <Command.Group heading={words.found} forceMount>
                  {others.map((result) => (
                    <Item
                      key={`${result.kind}/${result.id}`}
                      value={`found ${result.kind} ${result.id} ${result.label} ${query}`}
                      icon={kindIcons[result.kind] ?? 'search'}
                      title={result.label}
                      detail={result.kind}
                      onSelect={() => go(() => navigate({ href: result.url }))}
                    />
                  ))}
                  <Item
                    value={`search ${query}`}
                    icon="search"
                    title={words.searchAll(query.trim())}
                    onSelect={() => go(() => navigate({ to: '/search', search: { q: query.trim() } }))}
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
      <b>{title}</b>
      <span className="trunc">{detail}</span>
      <span className="end">{end}</span>
    </Command.Item>
  );
}
