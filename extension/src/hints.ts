/** Three hints for new users: offered once and shown in the panel until they are dismissed. */
import { ISignal, Signal } from '@lumino/signaling';

/** New: not offered. Offered: shown and not dismissed. Done: dismissed. */
export type HintProgress = 'new' | 'offered' | 'done';

/** Storage of the progress of a user: a setting, so that it applies to all windows. */
export interface IHintMemory {
  read(): Promise<HintProgress>;
  write(progress: HintProgress): Promise<void>;
}

export class Hints {
  /** Without a memory no hints are shown, since they could not be dismissed permanently. */
  constructor(private readonly _memory: IHintMemory | null) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether the panel shows the hints. */
  get shown(): boolean {
    return this._shown;
  }

  /**
   * Read the progress of the user, show the hints unless dismissed, and offer them the first time.
   */
  async start(offer: () => void): Promise<void> {
    const progress = (await this._memory?.read()) ?? 'done';
    this._show(progress !== 'done');
    if (progress === 'new') {
      await this._memory?.write('offered');
      offer();
    }
  }

  async putAway(): Promise<void> {
    this._show(false);
    await this._memory?.write('done');
  }

  private _show(shown: boolean): void {
    this._shown = shown;
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _shown = false;
}
