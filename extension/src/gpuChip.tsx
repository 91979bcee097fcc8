/**
 * The status bar: what the GPUs of this bench do. Asked only while this server holds some and
 * somebody may look; it has one colour, since nothing must be done about it.
 */
import { TextItem } from '@jupyterlab/statusbar';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';
import { chipText, chipTitle, ofServer } from './gpuWords';
import { useChanged, useNow } from './hooks';
import type { JobsModel } from './model';
import type { IGpuUse } from './tokens';

/** Between two questions; the scheduler measures every ten seconds. */
export const ASK_MS = 5000;

const NONE: readonly IGpuUse[] = [];

export class GpuChip extends ReactWidget {
  /** `server` is the name of this notebook server, empty for the default one. */
  constructor(
    private readonly _model: JobsModel,
    private readonly _server: string
  ) {
    super();
    this.addClass('bp-GpuChip');
  }

  protected override render(): React.JSX.Element {
    return <Chip model={this._model} server={this._server} />;
  }
}

function Chip(props: { model: JobsModel; server: string }): React.JSX.Element | null {
  const { model, server } = props;
  useChanged(model);
  const held = model.quota?.build.held.find(one => one.server === server)?.gpus.length ?? 0;
  const gpus = useGpus(model, server, held > 0);
  const now = useNow(ASK_MS);
  if (held === 0 || gpus.length === 0) {
    return null;
  }
  return (
    <TextItem source={chipText(gpus, now)} title={chipTitle(gpus)} data-testid="benchpool-gpus" />
  );
}

function useGpus(model: JobsModel, server: string, isAsked: boolean): readonly IGpuUse[] {
  const [gpus, setGpus] = React.useState(NONE);
  React.useEffect(() => {
    let isOver = !isAsked;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      if (!document.hidden) {
        try {
          const found = await model.api.gpuUse();
          setGpus(isOver ? NONE : ofServer(found, server));
        } catch {
          setGpus(NONE); // the item of jobs beside it says what is wrong
        }
      }
      if (!isOver) {
        timer = setTimeout(() => void ask(), ASK_MS);
      }
    };
    if (isAsked) {
      void ask();
    }
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [model, server, isAsked]);
  return gpus;
}
