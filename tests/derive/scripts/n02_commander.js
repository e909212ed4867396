const { program } = require('commander');

program
  .name('shrink')
  .description('Shrink pictures')
  .argument('<files...>', 'pictures')
  .requiredOption('-o, --out <directory>', 'where to write')
  .option('-q, --quality <number>', 'from 1 to 100', '80')
  .option('--keep', 'keep the originals')
  .parse();
console.log(program.opts());
