import { useState } from 'react';
import { ActDialog } from '../../components/act-dialog';
import { CopyText } from '../../components/blank';
import { Button } from '../../components/button';
import { Dialog } from '../../components/dialog';
import { Select } from '../../components/field';
import { RelativeTime } from '../../components/time';
import { text } from '../../text';
import { frozenOf } from './frozen';

const words = text.snapshot.freeze;
const lives = [24, 168, 720];

/** Freezes what a page shows behind a link that expires. */
export function FreezeButton({ title, path, data }: { title: string; path: string; data: object | undefined }) {
  const [open, setOpen] = useState(false);
  const [hours, setHours] = useState(168);
  const [made, setMade] = useState<{ token: string; expires_at: string }>();
  const address = made && `${location.origin}/snapshot/${made.token}`;
  return (
    <>
      <Button icon="link" isDisabled={data === undefined} onPress={() => setOpen(true)}>
        {words.button}
      </Button>
      <ActDialog<{ token: string; expires_at: string }>
        title={words.dialog(title)}
        isOpen={open}
        onClose={() => setOpen(false)}
        onDone={setMade}
        act={() => ({
          title: words.dialog(title),
          method: 'POST',
          path: '/api/v1/collab/snapshot',
          body: { view: frozenOf(title, path, data ?? {}, new Date()), ttl_hours: hours },
          confirm: words.confirm,
          done: words.done,
          topics: [],
        })}
      >
        <p className="muted">{words.explain}</p>
        <Select
          label={words.life}
          options={lives.map((each) => ({ id: String(each), label: words.lives(each) }))}
          value={String(hours)}
          onChange={(value) => setHours(Number(value))}
        />
      </ActDialog>
      {address && (
        <Dialog
          title={words.madeTitle}
          isOpen
          onClose={() => setMade(undefined)}
          footer={
            <Button kind="primary" onPress={() => setMade(undefined)}>
              {text.common.close}
            </Button>
          }
        >
          <p className="muted">
            {words.made} <RelativeTime at={made.expires_at} />.
          </p>
          <p className="wrap-any">
            <CopyText value={address} />
          </p>
        </Dialog>
      )}
    </>
  );
}
