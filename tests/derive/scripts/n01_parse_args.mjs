#!/usr/bin/env node
/**
 * Render a page.
 */
import { parseArgs } from 'node:util';

const options = {
  url: { type: 'string', short: 'u' },
  width: { type: 'string', default: '1280' },
  tag: { type: 'string', multiple: true },
  verbose: { type: 'boolean', short: 'v' }, // say more
};
const { values } = parseArgs({ options });
console.log(JSON.stringify(values));
