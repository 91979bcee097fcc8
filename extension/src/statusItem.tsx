/** Status bar item: the user's bench GPUs and jobs. A click opens the panel. */
import { TextItem } from '@jupyterlab/statusbar';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';
import { statusLine } from './format';
import { NO_POOL_SHORT } from './outages';
import { useChanged } from './hooks';
import type { JobsModel } from './model';

export class StatusItem extends ReactWidget {
  constructor(
    private readonly _model: JobsModel,
    private readonly _onOpen: () => void
  ) {
    super();
    this.addClass('jp-mod-highlighted');
    this.addClass('bp-StatusItem');
  }

  protected override render(): React.JSX.Element {
    return <StatusText model={this._model} onOpen={this._onOpen} />;
  }
}

function StatusText(props: { model: JobsModel; onOpen: () => void }): React.JSX.Element {
  const { model, onOpen } = props;
  useChanged(model);
  const isDown = model.connection.state === 'degraded';
  const text = isDown
    ? NO_POOL_SHORT
    : model.loaded
      ? statusLine(model.quota, model.mine)
      : 'train: …';
  return (
    <TextItem
      source={text}
      title={isDown ? model.connection.text : 'Show training jobs'}
      role="button"
      tabIndex={0}
      data-testid="benchpool-status"
      onClick={onOpen}
      onKeyDown={event => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          onOpen();
        }
      }}
    />
  );
}
