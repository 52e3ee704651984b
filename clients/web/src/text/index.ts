// Every text of the UI, in one catalogue. Screens add a file of their own and a line here.

import { readPreference } from '../state/preferences';
import { actions } from './actions';
import { alerts } from './alerts';
import { approvals } from './approvals';
import { assistant } from './assistant';
import { common } from './common';
import { deeds, runStates } from './deeds';
import { drift } from './drift';
import { events } from './events';
import { gallery } from './gallery';
import { login } from './login';
import { model } from './model';
import { overview } from './overview';
import { promote } from './promote';
import { isolateData } from './isolate';
import { pseudoize } from './pseudo';
import { registry } from './registry';
import { runs } from './runs';
import { shell } from './shell';
import { preferences } from './preferences';
import { search } from './search';
import { documents } from './documents';
import { llmops } from './llmops';
import { facility } from './facility';
import { flags } from './flags';
import { inbox } from './inbox';
import { notifications } from './notifications';
import { snapshot } from './snapshot';
import { config } from './config';
import { finops } from './finops';
import { audit } from './audit';
import { governance } from './governance';
import { health } from './health';

const english = {
  actions,
  common,
  shell,
  login,
  overview,
  registry,
  model,
  approvals,
  runs,
  drift,
  alerts,
  events,
  deeds,
  runStates,
  gallery,
  audit,
  governance,
  health,
  finops,
  config,
  snapshot,
  flags,
  facility,
  llmops,
  documents,
  search,
  preferences,
  assistant,
  promote,
  inbox,
  notifications,
};

export type Catalogue = typeof english;

/** The catalogue of the chosen language, which is read once: a change takes effect when the page is loaded again. */
export const text: Catalogue = isolateData(readPreference('language') === 'pseudo' ? pseudoize(english) : english);
