/** Keys, each in its own cap. */
export function Keys({ keys }: { keys: string }) {
  return (
    <>
      {keys.split(' ').map((key, i) => (
        <kbd key={`${key}${i}`}>{key}</kbd>
      ))}
    </>
  );
}

/** The line under a list that shows its keys. */
export function KeyHints({ hints }: { hints: readonly (readonly [keys: string, does: string])[] }) {
  return (
    <span className="hints hide-touch">
      {hints.map(([keys, does]) => (
        <span key={keys}>
          <Keys keys={keys} /> {does}
        </span>
      ))}
    </span>
  );
}
