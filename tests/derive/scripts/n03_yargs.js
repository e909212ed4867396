const yargs = require('yargs/yargs');
const argv = yargs(process.argv.slice(2))
  .option('size', { alias: 's', type: 'number', default: 3, describe: 'How large' })
  .option('mode', { choices: ['fast', 'slow'], demandOption: true })
  .option('dry', { type: 'boolean', default: false })
  .argv;
console.log(argv);
