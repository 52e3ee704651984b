import type { ReactNode } from 'react';
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components';

export interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  wide?: boolean;
  /** At the right edge, as tall as the window: an object of the list beside it. */
  side?: boolean;
  /** Asks a question whose answer has consequences: announced at once, not closed by a click outside. */
  alert?: boolean;
  footer?: ReactNode;
  children: ReactNode;
}

/** A modal that traps focus and gives it back. */
export function Dialog({ title, isOpen, onClose, wide, side, alert, footer, children }: DialogProps) {
  return (
    <ModalOverlay
      className={side ? 'scrim beside' : 'scrim'}
      isOpen={isOpen}
      isDismissable={!alert}
      onOpenChange={(open) => !open && onClose()}
    >
      <Modal className={wide ? 'dialog wide' : 'dialog'}>
        <AriaDialog role={alert ? 'alertdialog' : 'dialog'}>
          <header>
            <Heading slot="title" level={2}>
              {title}
            </Heading>
          </header>
          <div className="body">{children}</div>
          {footer && <footer>{footer}</footer>}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
