/**
 * Three hints for whoever is new here: offered once, shown in the panel until they are put away.
 */
import { ISignal, Signal } from '@lumino/signaling';

/** New: never told of them. Offered: told once, not put away yet. Done: put away. */
export type HintProgress = 'new' | 'offered' | 'done';

/** Where it is kept how far a user is: a setting, so that it holds in every window at once. */
export interface IHintMemory {
  read(): Promise<HintProgress>;
  write(progress: HintProgress): Promise<void>;
}

export class Hints {
  /** Without a memory nothing is shown: hints that always return are a nuisance. */
  constructor(private readonly _memory: IHintMemory | null) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether the panel shows them. */
  get shown(): boolean {
    return this._shown;
  }

  /** Find out whether this user is new here; if so, show the hints, and the first time offer them. */
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
