import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { Dialog } from '../components/dialog';
import { Keys } from '../components/kbd';
import { keysAreOn } from '../state/keys';
import { readPreference } from '../state/preferences';
import { text } from '../text';
import { navGroups } from './nav';

const words = text.shell.keys;
/** g and its letter belong together this long. */
const CHORD = 1200;

export interface GlobalKeys {
  onPalette?: () => void;
  onAssistant?: () => void;
  onInbox: () => void;
  onHelp: () => void;
}

/** Listens for the keys that work on every page. */
export function useGlobalKeys({ onPalette, onAssistant, onInbox, onHelp }: GlobalKeys): void {
  const navigate = useNavigate();
  const chord = useRef(-CHORD);
  useEffect(() => {
    // Before the page's fields get it: they keep the keys that are pressed in them to themselves.
    const palette = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'k' || !onPalette) return;
      event.preventDefault();
      event.stopPropagation();
      onPalette();
    };
    const press = (event: KeyboardEvent): void => {
      if (!keysAreOn(event)) return;
      // When the keys were pressed, not when a busy page got round to them.
      const afterG = event.timeStamp - chord.current < CHORD;
      chord.current = event.key === 'g' && !afterG ? event.timeStamp : -CHORD;
      if (afterG) {
        const entry = navGroups.flatMap((group) => group.entries).find((each) => each.letter === event.key);
        if (!entry) return;
        event.preventDefault();
        void navigate({ to: entry.to });
      } else if (event.key === '?') onHelp();
      else if (event.key === 'i') onInbox();
      else if (event.key === '.' && onAssistant) onAssistant();
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', palette, { capture: true });
    addEventListener('keydown', press);
    return () => {
      removeEventListener('keydown', palette, { capture: true });
      removeEventListener('keydown', press);
    };
  }, [navigate, onPalette, onAssistant, onInbox, onHelp]);
}

const lists: readonly (readonly [string, string])[] = [
  ['/', words.filter],
  ['j k', words.move],
  ['Enter', words.open],
  ['x', words.select],
];

/** All keys on one sheet. */
export function KeySheet({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const go = navGroups.flatMap((group) => group.entries).filter((entry) => entry.letter);
  const sections: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
    [
      words.groups.everywhere,
      [
        ['Ctrl K', words.palette],
        ['.', words.assistant],
        ['i', words.inbox],
        ['?', words.help],
        ['Esc', words.close],
      ],
    ],
    [words.groups.lists, lists],
    [
      words.groups.approvals,
      [
        ['a', words.approve],
        ['r', words.reject],
      ],
    ],
    [words.groups.go, go.map((entry) => [`g ${entry.letter}`, entry.label] as const)],
  ];
  return (
    <Dialog title={words.title} isOpen={isOpen} onClose={onClose} wide>
      {readPreference('keys') === 'off' && <p className="muted">{words.off}</p>}
      <div className="keysheet">
        {sections.map(([title, keys]) => (
          <section key={title} aria-label={title}>
            <h3 className="sub-h">{title}</h3>
            <dl>
              {keys.map(([key, does]) => (
                <div key={key + does}>
                  <dt>
                    <Keys keys={key} />
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
